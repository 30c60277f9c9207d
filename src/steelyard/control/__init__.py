"""What parameters are for: control that knows friction and loads, flexible joints, what touches a robot."""

from .adaptation import Adaptation, Found, adapt, opponents
from .adaptive import SlotineLi
from .compensation import Adaptive, Compensated, Dither, FeedForward, Pulse
from .disturbance import DisturbanceObserver
from .elastic_loop import ElasticLoop, ElasticPlant, elastic_plant, root_locus, stability_limit
from .elastic_study import ElasticStudy, study_flexible
from .flexible import PrintedLaw, TwoTimeScale, closed_loop, pendulum
from .following import Following
from .friction_trial import Trial, compare_compensations, moves_and_rests
from .loop import Plant, Run, Seen, Wanted, run_controlled
from .momentum import MomentumObserver, Tool, force_at, residuals
from .motions import reference_motion
from .touch import Contact, Thresholds, calibrate, find_contacts, smallest_force
from .tracking import ComputedTorque, Feedback
from .unknowns import UnknownLoad, UnknownRobot

__all__ = [
    "Adaptation",
    "Adaptive",
    "Compensated",
    "ComputedTorque",
    "Contact",
    "DisturbanceObserver",
    "Dither",
    "ElasticLoop",
    "ElasticPlant",
    "ElasticStudy",
    "FeedForward",
    "Feedback",
    "Following",
    "Found",
    "MomentumObserver",
    "Plant",
    "PrintedLaw",
    "Pulse",
    "Run",
    "Seen",
    "SlotineLi",
    "Thresholds",
    "Tool",
    "Trial",
    "TwoTimeScale",
    "UnknownLoad",
    "UnknownRobot",
    "Wanted",
    "adapt",
    "calibrate",
    "closed_loop",
    "compare_compensations",
    "elastic_plant",
    "find_contacts",
    "force_at",
    "moves_and_rests",
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
