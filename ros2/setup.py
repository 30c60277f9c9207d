"""Installs the package where ROS 2 looks for it."""

from setuptools import setup

NAME = "identification"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", ["launch/identification.launch.py", "launch/panda_sim.launch.py"]),
        (f"share/{NAME}/config", ["config/panda_sim_node.yaml"]),
    ],
    install_requires=["setuptools", "steelyard"],
    zip_safe=True,
    maintainer="Steelyard maintainers",
    maintainer_email="maintainers@example.invalid",
    description="Identifies a robot's dynamics from its joint states, with the Python package steelyard",
    license="Apache-2.0",
    entry_points={
        "console_scripts": [
            "identification_node = identification.identification_node:main",
            "panda_sim_node = identification.panda_sim_node:main",
        ]
    },
)
