"""The node `identification_node`: parameters data_file, algorithm, output_file, model, mapping, stay."""

import json
import sys

from steelyard.errors import SteelyardError

DEFAULTS = {"data_file": "", "algorithm": "OLS", "output_file": "", "model": "panda", "mapping": "", "stay": False}
RESULT_TOPIC = "~/result"


def publish_result(node, result):
    """The result as JSON on a latched topic, for whoever asks later; returns the publisher, which must be kept."""
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, RESULT_TOPIC, latched)
    message = String()
    message.data = json.dumps(result)
    publisher.publish(message)
    return publisher


def identify(node):
    """Read the parameters, do the work, say what came of it."""
    from .work import run

    values = {name: node.declare_parameter(name, default).value for name, default in DEFAULTS.items()}
    stay = values.pop("stay")
    node.get_logger().info(f"identifying {values['model']} from {values['data_file']} by {values['algorithm']}")
    result = run(**values)
    log = node.get_logger()
    (log.info if result["converged"] else log.warning)(result["message"])
    for joint, rmse in result["torque_rmse_held_out"].items():
        log.info(f"{joint}: torque off by {rmse:.4g} rms on samples that were not used")
    if result["written"]:
        log.info(f"wrote {result['written']}")
    return publish_result(node, result), stay


def main(args=None):
    """Run the node; exit code 2 says that the input is at fault."""
    import rclpy

    rclpy.init(args=args)
    node = rclpy.create_node("identification_node")
    try:
        _publisher, stay = identify(node)
        if stay:
            rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    except SteelyardError as error:
        node.get_logger().error(str(error))
        sys.exit(2)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
