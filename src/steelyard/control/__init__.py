"""What parameters are for: controllers over the simulated plant, adaptation, flexible joints, contact."""

from .adaptation import Adaptation, Found, adapt, opponents
from .adaptive import SlotineLi
from .elastic_loop import ElasticLoop, ElasticPlant, elastic_plant, root_locus, stability_limit
from .elastic_study import ElasticStudy, study_flexible
from .flexible import PrintedLaw, TwoTimeScale, closed_loop, pendulum
from .loop import Plant, Run, Seen, Wanted, run_controlled
from .momentum import MomentumObserver, Tool, force_at, residuals
from .motions import reference_motion
from .touch import Contact, Thresholds, calibrate, find_contacts, smallest_force
from .tracking import ComputedTorque, Feedback
from .unknowns import UnknownLoad, UnknownRobot

__all__ = [
    "Adaptation",
    "ComputedTorque",
    "Contact",
    "ElasticLoop",
    "ElasticPlant",
    "ElasticStudy",
    "Feedback",
    "Found",
    "MomentumObserver",
    "Plant",
    "PrintedLaw",
    "Run",
    "Seen",
    "SlotineLi",
    "Thresholds",
    "Tool",
    "TwoTimeScale",
    "UnknownLoad",
    "UnknownRobot",
    "Wanted",
    "adapt",
    "calibrate",
    "closed_loop",
    "elastic_plant",
    "find_contacts",
    "force_at",
    "opponents",
    "pendulum",
    "reference_motion",
    "residuals",
    "root_locus",
    "run_controlled",
    "smallest_force",
    "stability_limit",
    "study_flexible",
]
