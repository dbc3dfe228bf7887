"""keystone/backend"""
