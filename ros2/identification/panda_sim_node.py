"""The node `panda_sim_node`: a robot in MuJoCo that follows a trajectory and publishes its joint states."""

import sys
import threading

from steelyard.errors import OptionError, SteelyardError

DEFAULTS = {"publish_rate_hz": 100.0, "model": "panda", "trajectory": "", "bandwidth_hz": 4.0, "output_file": ""}
TOPIC = "joint_states"
_NS = 1_000_000_000


def stamped(message, nanoseconds):
    """The message with a stamp."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, _NS)
    return message


def move(node, stop):
    """Let the rig execute the trajectory in real time, and publish each of its samples."""
    from sensor_msgs.msg import JointState

    import steelyard as sy
    from steelyard.data.recording import save_recording
    from steelyard.excitation.exchange import read_trajectory
    from steelyard.simulation.rig import run_rig
    from steelyard.simulation.rig_control import pd_for

    values = {name: node.declare_parameter(name, default).value for name, default in DEFAULTS.items()}
    if not values["trajectory"]:
        raise OptionError("trajectory is empty; give a file that `steelyard excite` wrote")
    robot = sy.load_robot(values["model"])
    path = read_trajectory(values["trajectory"], robot.dof_names)
    publisher = node.create_publisher(JointState, TOPIC, 10)
    start = node.get_clock().now().nanoseconds

    def publish(t, q, qd, tau):
        message = stamped(JointState(), start + round(t * 1e9))
        message.name = list(robot.dof_names)
        message.position, message.velocity, message.effort = q.tolist(), qd.tolist(), tau.tolist()
        publisher.publish(message)

    rate = float(values["publish_rate_hz"])
    controller = pd_for(robot, path, values["bandwidth_hz"], publish_rate_hz=rate)
    node.get_logger().info(f"{robot.name} moves for {path.duration:g} s and publishes at {rate:g} Hz")
    run = run_rig(
        robot, path, controller=controller, publish_rate_hz=rate, publish=publish, real_time=True, stop=stop
    )  # fmt: skip
    if values["output_file"]:
        save_recording(run.recording, values["output_file"])
    node.get_logger().info(f"{len(run.recording)} samples, behind the clock by at most {1e3 * run.latest_s:.1f} ms")
    return run


def main(args=None):
    """Run the node; the rig moves in this thread, and ROS is served in another."""
    import rclpy

    rclpy.init(args=args)
    node = rclpy.create_node("panda_sim_node")
    stop = threading.Event()
    serving = threading.Thread(target=rclpy.spin, args=(node,), daemon=True)
    serving.start()
    try:
        move(node, stop)
    except KeyboardInterrupt:
        stop.set()
    except SteelyardError as error:
        node.get_logger().error(str(error))
        sys.exit(2)
    finally:
        rclpy.try_shutdown()
        serving.join(timeout=2.0)
        node.destroy_node()


if __name__ == "__main__":
    main()
