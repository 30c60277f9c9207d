"""Campaigns: estimators against each other on robots whose parameters are known, thousands of runs in one table."""
