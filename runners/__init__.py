"""Run one point of a plan as one Slurm job and bring back its results.

This package may import :mod:`matrix`; `matrix` never imports this one.
"""
