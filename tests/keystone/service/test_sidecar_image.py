"""What the image of the sidecar says to its processes, and what the modules make of it."""

from __future__ import annotations

import ctypes

from tests.e2e.federation.sidecar import RECIPE

from moorage.node.images.recipe import load


class _VersionInfo(ctypes.Structure):
    """`curl_version_info_data` of curl/curl.h up to its seventh age."""

    _fields_ = (
        ("age", ctypes.c_int), ("version", ctypes.c_char_p), ("version_num", ctypes.c_uint), ("host", ctypes.c_char_p),
        ("features", ctypes.c_int), ("ssl_version", ctypes.c_char_p), ("ssl_version_num", ctypes.c_long),
        ("libz_version", ctypes.c_char_p), ("protocols", ctypes.c_void_p), ("ares", ctypes.c_char_p),
        ("ares_num", ctypes.c_int), ("libidn", ctypes.c_char_p), ("iconv_ver_num", ctypes.c_int),
        ("libssh_version", ctypes.c_char_p), ("brotli_ver_num", ctypes.c_uint), ("brotli_version", ctypes.c_char_p),
        ("nghttp2_ver_num", ctypes.c_uint), ("nghttp2_version", ctypes.c_char_p), ("quic_version", ctypes.c_char_p),
        ("cainfo", ctypes.c_char_p), ("capath", ctypes.c_char_p),
    )  # fmt: skip


def test_public_authorities_are_hidden_from_mod_auth_mellon_only() -> None:
    """OpenSSL's own list is empty; libcurl, by which mod_auth_openidc asks its providers, has one of its own."""
    assert load(RECIPE).file.environment["SSL_CERT_FILE"] == "/dev/null"
    curl = ctypes.CDLL("libcurl.so.4")
    curl.curl_version_info.restype = ctypes.POINTER(_VersionInfo)
    said = curl.curl_version_info(6).contents
    assert (said.age >= 6, said.cainfo) == (True, b"/etc/ssl/certs/ca-certificates.crt")
