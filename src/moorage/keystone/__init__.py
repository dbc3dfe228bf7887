"""keystone"""
