"""ros2 launch identification identification.launch.py data_file:=run.csv algorithm:=OLS output_file:=result.yaml"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ALGORITHMS = ["OLS", "WLS", "IRLS", "TLS", "EKF", "ML", "CLOE"]
ARGUMENTS = {
    "data_file": {"description": "Recording: CSV, NPZ, MAT, Parquet or a bag"},
    "algorithm": {"default_value": "OLS", "choices": ALGORITHMS, "description": "How to identify"},
    "output_file": {"default_value": "", "description": "Result, .yaml; or the identified model, .xml or .urdf"},
    "model": {"default_value": "panda", "description": "Library robot, or an MJCF, URDF or DH file"},
    "mapping": {"default_value": "", "description": "YAML that explains a foreign recording"},
}


def generate_launch_description():
    parameters = {name: ParameterValue(LaunchConfiguration(name), value_type=str) for name in ARGUMENTS}
    node = Node(
        package="identification",
        executable="identification_node",
        name="identification_node",
        output="screen",
        parameters=[parameters],
    )
    return LaunchDescription([*(DeclareLaunchArgument(name, **more) for name, more in ARGUMENTS.items()), node])
