"""ros2 launch identification panda_sim.launch.py trajectory:=traj.csv"""

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def generate_launch_description():
    configuration = f"{get_package_share_directory('identification')}/config/panda_sim_node.yaml"
    trajectory = ParameterValue(LaunchConfiguration("trajectory"), value_type=str)
    node = Node(
        package="identification",
        executable="panda_sim_node",
        name="panda_sim_node",
        output="screen",
        parameters=[configuration, {"trajectory": trajectory}],
    )
    return LaunchDescription([DeclareLaunchArgument("trajectory", description="What `steelyard excite` wrote"), node])
