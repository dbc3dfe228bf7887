"""keystone/service"""
