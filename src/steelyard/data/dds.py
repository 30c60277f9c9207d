"""ROS 2's wire format without ROS: `sensor_msgs/JointState` in CDR over DDS, as `rmw` implementations send it.

A ROS topic `/joint_states` is the DDS topic `rt/joint_states`; the type `sensor_msgs/msg/JointState` is
`sensor_msgs::msg::dds_::JointState_`, in XCDR version 1; ROS's default quality of service is reliable, volatile and
keep-last (design.ros2.org, "Topic and Service name mapping to DDS").
"""

import os
import re
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

from ..errors import OptionError

INSTALL = "pip install 'steelyard[live]'"
LARGEST_DOMAIN = 232  # above it, DDS has no UDP ports
_PATIENCE_MS = 1000  # how long a writer waits for a slow reader before it gives up a sample, ms


@cache
def cyclone() -> SimpleNamespace:
    """The parts of Cyclone DDS that are used here, loaded when first needed."""
    try:
        from cyclonedds import core, domain, pub, qos, sub, topic, util
        from cyclonedds.idl import annotations, make_idl_struct, types
    except ImportError as error:
        raise OptionError(f"live joint states need the package cyclonedds ({error}); {INSTALL}") from None
    return SimpleNamespace(
        core=core, domain=domain, pub=pub, qos=qos, sub=sub, topic=topic, util=util, types=types,
        annotations=annotations, make_idl_struct=make_idl_struct,
    )  # fmt: skip


@cache
def messages() -> SimpleNamespace:
    """The classes of the messages `Time`, `Header` and `JointState`, each with its DDS name."""
    dds = cyclone()
    kinds = dds.types

    def struct(package: str, name: str, /, **fields: Any) -> Any:
        made = dds.make_idl_struct(f"{name}_", f"{package}.msg.dds_.{name}_", fields)
        dds.annotations.final(made)
        dds.annotations.autoid("sequential")(made)
        return made

    time = struct("builtin_interfaces", "Time", sec=kinds.int32, nanosec=kinds.uint32)
    header = struct("std_msgs", "Header", stamp=time, frame_id=str)
    numbers = kinds.sequence[kinds.float64]
    joint_state = struct(
        "sensor_msgs", "JointState",
        header=header, name=kinds.sequence[str], position=numbers, velocity=numbers, effort=numbers,
    )  # fmt: skip
    return SimpleNamespace(Time=time, Header=header, JointState=joint_state)


def _domain_of_environment() -> int:
    text = os.environ.get("ROS_DOMAIN_ID", "").strip() or "0"
    if not text.isdigit():
        raise OptionError(f"ROS_DOMAIN_ID is '{text}'; it must be a whole number from 0 to {LARGEST_DOMAIN}")
    return int(text)


@dataclass(frozen=True)
class Network:
    """Where robots are looked for: a DDS domain, and one network interface only where one is named.

    No domain: that of ROS_DOMAIN_ID, else 0. No interface: what Cyclone DDS chooses, or CYCLONEDDS_URI says.
    """

    domain: int | None = None
    interface: str | None = None

    def __post_init__(self) -> None:
        domain = _domain_of_environment() if self.domain is None else self.domain
        if not 0 <= domain <= LARGEST_DOMAIN:
            raise OptionError(f"the DDS domain is {domain}; it must be from 0 to {LARGEST_DOMAIN}")
        object.__setattr__(self, "domain", domain)
        if self.interface is not None and not re.fullmatch(r"[\w.:@-]{1,64}", self.interface):
            raise OptionError(f"'{self.interface[:64]}' is no name of a network interface; give one like lo or eth0")

    def configuration(self) -> str | None:
        """Cyclone's configuration for the one interface; on loopback, which has no multicast, peers are asked."""
        if self.interface is None:
            return None
        local = self.interface in ("lo", "lo0")
        general = "<AllowMulticast>false</AllowMulticast>" if local else ""
        discovery = (
            "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>"
            '<Peers><Peer address="localhost"/></Peers></Discovery>'
        )
        return (
            f'<CycloneDDS><Domain Id="{self.domain}"><General><Interfaces><NetworkInterface name="{self.interface}"/>'
            f"</Interfaces>{general}</General>{discovery if local else ''}</Domain></CycloneDDS>"
        )


class Connection:
    """A participant in a domain of this process; `connect` shares it among readers and writers."""

    def __init__(self, network: Network) -> None:
        dds = cyclone()
        configuration = network.configuration()
        try:
            self.domain = None if configuration is None else dds.domain.Domain(network.domain, configuration)
            self.participant = dds.domain.DomainParticipant(network.domain)
        except dds.core.DDSException:
            where = f" on interface {network.interface}" if network.interface else ""
            raise OptionError(
                f"DDS domain {network.domain} cannot be joined{where}; "
                "check the interface's name, CYCLONEDDS_URI, and that this process has not joined the domain already"
            ) from None

    def topic(self, ros_name: str) -> Any:
        return cyclone().topic.Topic(self.participant, dds_name(ros_name), messages().JointState)


_open: "WeakValueDictionary[Network, Connection]" = WeakValueDictionary()


def connect(network: Network) -> Connection:
    """The connection of this process to a network; it closes when nobody holds it any more."""
    connection = _open.get(network)
    if connection is None:
        connection = _open[network] = Connection(network)
    return connection


def dds_name(ros_name: str) -> str:
    """`joint_states`, `/panda/joint_states` or `rt/joint_states` as DDS calls it."""
    name = ros_name.removeprefix("rt/").strip("/")
    if not re.fullmatch(r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name, re.ASCII):
        raise OptionError(f"'{ros_name[:80]}' is no name of a ROS topic; give one like /joint_states")
    return f"rt/{name}"


def quality(depth: int, best_effort: bool = False) -> Any:
    """ROS's quality of service: reliable (or best effort), volatile, keep-last."""
    dds = cyclone()
    policy = dds.qos.Policy
    waiting = dds.util.duration(milliseconds=_PATIENCE_MS)
    return dds.qos.Qos(
        policy.Reliability.BestEffort if best_effort else policy.Reliability.Reliable(waiting),
        policy.Durability.Volatile,
        policy.History.KeepLast(depth),
        policy.DataRepresentation(use_cdrv0_representation=True),
    )
