"""Compiled dynamics of one sample and of many; everything is expressed in world axes unless a name says otherwise."""
