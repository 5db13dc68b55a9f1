"""Where each project publishes its releases and their checksums. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.sources import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One file to download.

    ``members`` maps each program to its file in the archive; it is None when the file is the program. ``pinned`` is its
    SHA-256 in hex where it is known from elsewhere; otherwise the one that ``checksum_url`` publishes must do.
    """

    url: str
    checksum_url: str
    programs: Sequence[UpstreamProgram]
    members: Mapping[UpstreamProgram, str] | None
    pinned: str | None = None

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]


def release_files(
    project: Project,
    version: Version,
    programs: Sequence[UpstreamProgram],
    target: Target,
    pins: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ReleaseFile, ...]:
    """The files that hold ``programs``; empty when the project publishes no checksums for its releases.

    ``pins`` maps addresses without ``https://`` to the known digests of their files.
    """
    files = _files(project, version, programs, target)
    return tuple(replace(each, pinned=pins.get(each.url.removeprefix("https://"))) for each in files)


def _files(
    project: Project, version: Version, programs: Sequence[UpstreamProgram], target: Target
) -> tuple[ReleaseFile, ...]:
    if project is Project.KUBERNETES:
        return tuple(_kubernetes(version, program, target) for program in programs)
    if project is Project.ETCD:
        return (_etcd(version, programs, target),)
    if project is Project.COREDNS:
        return (_coredns(version, programs, target),)
    return ()


def _kubernetes(version: Version, program: UpstreamProgram, target: Target) -> ReleaseFile:
    url = f"https://dl.k8s.io/{version.tag}/bin/{target.goos}/{target.goarch}/{program}"
    return ReleaseFile(url=url, checksum_url=f"{url}.sha256", programs=(program,), members=None)


def _etcd(version: Version, programs: Sequence[UpstreamProgram], target: Target) -> ReleaseFile:
    base = f"https://github.com/etcd-io/etcd/releases/download/{version.tag}"
    folder = f"etcd-{version.tag}-{target}"
    return ReleaseFile(
        url=f"{base}/{folder}.tar.gz",
        checksum_url=f"{base}/SHA256SUMS",
        programs=tuple(programs),
        members={program: f"{folder}/{program}" for program in programs},
    )


def _coredns(version: Version, programs: Sequence[UpstreamProgram], target: Target) -> ReleaseFile:
    base = f"https://github.com/coredns/coredns/releases/download/{version.tag}"
    url = f"{base}/coredns_{version}_{target.goos}_{target.goarch}.tgz"
    return ReleaseFile(
        url=url,
        checksum_url=f"{url}.sha256",
        programs=tuple(programs),
        members={p: p.value for p in programs},
    )


def mirrored(url: str, mirror: str | None) -> str:
    """``url`` on a mirror: the same path, below a folder with the name of the original host.

    ``https://dl.k8s.io/v1/x`` on ``http://mirror/k`` is ``http://mirror/k/dl.k8s.io/v1/x``.
    """
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url


def published_sum(text: str, name: str) -> str | None:
    """The SHA-256 (hex) of ``name`` in a checksum file: the sum alone, or lines as of sha256sum."""
    for line in text.splitlines():
        words = line.split()
        if not words or not re.fullmatch(r"[0-9a-fA-F]{64}", words[0]):
            continue
        if len(words) == 1 or words[-1].lstrip("*").rpartition("/")[2] == name:
            return words[0].lower()
    return None


# Digests of the default versions, and of those before them, from other places than the programs. Data only. An attacker
# who can change a release, or answer in its place, can change the checksum next to it as well; these digests it cannot.
# Checked by ``Releases`` and ``GoBuild`` where they have one, and again whenever a cached program is used.

_KUBERNETES = "dl.k8s.io/v1.36.3/bin/linux"

#: SHA-256 of official releases by their address, without ``https://``. Those of Kubernetes were read from kops
#: (pkg/assets/assetdata/k8s-1.36.yaml), which generates and reviews them; kubectl's are in Kubespray's list, too. None
#: is known for certain for Kubernetes 1.37.2, etcd 3.6.16 and 3.7.3, and CoreDNS 1.15.0: downloads of these are checked
#: against the checksum that the project publishes, and a line reports that.
RELEASES = {
    f"{_KUBERNETES}/amd64/kube-apiserver": "1f217d397234a6d065da663c6e086fdb02c0f0de97a0758ff3e6f3956f4ef8ab",
    f"{_KUBERNETES}/amd64/kube-controller-manager": "7edfe976d5a06c7a702d653e914095f4a732a04bb2139115b6a6eba6a9b781c7",
    f"{_KUBERNETES}/amd64/kube-scheduler": "b8955d4518c902110b50a825364339b1fb673822518ce0ba081a69ed634f8eee",
    f"{_KUBERNETES}/amd64/kubectl": "ebbd080e7c2e275093b55915722043257eb24004363e20acb3c4d71919f88336",
    f"{_KUBERNETES}/arm64/kube-apiserver": "16001b9d35d23634c361a1e2b7b0fc7abe186984af697ef7a869c8c8cded78b7",
    f"{_KUBERNETES}/arm64/kube-controller-manager": "27868a5c822824945b93f2d8a724a5dcd99affc68b47230ae766bff8795bbb84",
    f"{_KUBERNETES}/arm64/kube-scheduler": "ca1c7cd0033942bf9ef7eac80e18375d91f6f29487244c3e685f11163b01a88d",
    f"{_KUBERNETES}/arm64/kubectl": "3d86f24401c41ae5a46ac50eef8865fe891d3647d324a0836f6c63757a126e62",
}

#: Lines of a go.sum: the modules of these versions, and those that are built along with them under the same version.
#: Each was verified against the signed tree of Go's checksum database. A project's own go.sum is part of its module, so
#: these pin all other modules as well.
MODULES = """\
github.com/coredns/coredns v1.15.0 h1:OBT+OEyHVdUiVxPhrNlC5XZVq3RkSxzQXfZQ76gm5ck=
go.etcd.io/etcd/api/v3 v3.6.16 h1:+aBihYqz6+zMcGWNNT2dbFMKvqqQXvHJG9SmZDzwRdA=
go.etcd.io/etcd/api/v3 v3.7.3 h1:2tumepXe+wi7Wab64uUO71K7ISQyUWLGC1DJbbc59sY=
go.etcd.io/etcd/client/pkg/v3 v3.6.16 h1:HIgUJREB8Dpngx2P57SJ6zaXlNgvVww/gCudfsnr8jc=
go.etcd.io/etcd/client/pkg/v3 v3.7.3 h1:5zMwNu3ycrzCeA5NwOfQbxFRhqq974chq1DrYMua4QI=
go.etcd.io/etcd/client/v3 v3.6.16 h1:X/vPXgVsXvG0OoqXGvq2N7njeBj+bCY9lOZPyUsZJUg=
go.etcd.io/etcd/client/v3 v3.7.3 h1:UrXcetgkuSEocaBlQlulQRJlXLEnUAHuBRbHh0lue1Q=
go.etcd.io/etcd/etcdctl/v3 v3.6.16 h1:vxr4EySgAbHcd5OiYI/IwRnQmC4y5OmusSPLYxQ84/I=
go.etcd.io/etcd/etcdctl/v3 v3.7.3 h1:afjzE22RBDqciPNGDNExe2/kWfJAZsOskZPefffTEDM=
go.etcd.io/etcd/etcdutl/v3 v3.6.16 h1:ghP1wTi/25g43jlrhOmPz0X4D0dXAYBt+nbhYicHcJ0=
go.etcd.io/etcd/etcdutl/v3 v3.7.3 h1:JwG6zadsUzBYihuZLn3IIfB2Mi+UX2d+aUybvcfunyk=
go.etcd.io/etcd/pkg/v3 v3.6.16 h1:ewGbB52WuLTFC0V5ch0rtE9M6HOk77VVlF31i3zNE+k=
go.etcd.io/etcd/pkg/v3 v3.7.3 h1:FoxH2JLECo/PYEHilgBFqz7Zlyiv5Sd20OlOOYESUos=
go.etcd.io/etcd/server/v3 v3.6.16 h1:sLkpvz3RFtiNd/yPrZBKz5kT+XO1ZJkhmuUJeqc7OmA=
go.etcd.io/etcd/server/v3 v3.7.3 h1:KcTZ/aEZrOiQe0/kdr7iYYcvyfbEoOwDOacHkz8xwZc=
k8s.io/api v0.36.3 h1:NxB+05W2UGqXWFXcLO0RB5cnqnUPP5v5sVlaOH0Iz4w=
k8s.io/api v0.37.2 h1:PnxqnUFy93jr2GcpWDkKOm8wfy25kT9wa572MuQS8oc=
k8s.io/apiextensions-apiserver v0.36.3 h1:dPmOAPhwTtqb1bTxbFPsy18KHPhktQeO3WUPXunZIB0=
k8s.io/apiextensions-apiserver v0.37.2 h1:myaUiAlm1NRLYdpAvWYTqdgeiCepFupJiRFVVueMUYw=
k8s.io/apimachinery v0.36.3 h1:PkzMRBRG8joFD8EhCuQAtNPvJlxb82FwplP26HIzvAM=
k8s.io/apimachinery v0.37.2 h1:G4t9RGoPDbQML38hz/kQQiltttgd3egg2ODCR8aIc2o=
k8s.io/apiserver v0.36.3 h1:MGSg2SkdfuytiDEcRylT5mQFmmSsbx90XFUO67Y4bsQ=
k8s.io/apiserver v0.37.2 h1:9Jq73PeHAA0RThpW7ou6lBcO2+SxLcPrAgleONSMUNQ=
k8s.io/cli-runtime v0.36.3 h1:g+eJ+M1sYpnNYp/q5fzaw2KejIL0Q7DH+xFl6YVoL4U=
k8s.io/cli-runtime v0.37.2 h1:EpE50B2FmXz8SxkYqoS2q0piDk1qe7g9dGZGIW+apws=
k8s.io/client-go v0.36.3 h1:M4JdVzXxYcZk4fGpfDdYnxSwhLKWCFoQsHW6t+z8Hfg=
k8s.io/client-go v0.37.2 h1:sgFtyRZukGkOrsu+QgS7LYnbFFJ5ut3MchdBNduD//E=
k8s.io/cloud-provider v0.36.3 h1:M5Nu+Dms8w5WIWJ+kmazaXCpTy3sRPxxFkksTH23MmA=
k8s.io/cloud-provider v0.37.2 h1:o3rfu8SBGTm7ut/OlTR7VtDsz/cutoYs7U7dC+OSSxY=
k8s.io/cluster-bootstrap v0.36.3 h1:pyPFVCjsHrwl3mIQV3dp7YuXn//1DHVpCDzpcjqF6tI=
k8s.io/cluster-bootstrap v0.37.2 h1:lw5dFPHIPFylnMktkPrPqRQFo6jcXG/BwWXcIns9bPY=
k8s.io/component-base v0.36.3 h1:vc/UFvPCkW0irPz84LAodAL1j3f4xktPM6dDJIEheAY=
k8s.io/component-base v0.37.2 h1:Ia9IKTg1yWrUntJU5lVetapkC9pXlLg9L6P3R1IkbcY=
k8s.io/component-helpers v0.36.3 h1:hya22S0Mto0SlHaiD4kMIi817f/tK7uTMsShxrDKQaY=
k8s.io/component-helpers v0.37.2 h1:TQBsmHFs8gpfiyPFvyMaxqTgojtcXR2mVj+knnycln0=
k8s.io/controller-manager v0.36.3 h1:GUP9E6+1EUEzxZgceOw2I+jyuahrTluadj6ZoZ/1Sbw=
k8s.io/controller-manager v0.37.2 h1:i6v/0wHbTNnUfi2HTFcoZRCitZk+pyFi90FdUs+u8+E=
k8s.io/cri-api v0.36.3 h1:QFEMKGim6DSdlaW3JwpjVCjUQgTnkKG7i3McAaBW6Fo=
k8s.io/cri-api v0.37.2 h1:UMvN3s6yoG3SVbxX9Mw6yVmVmaLwVAjy0hXUpJzXogo=
k8s.io/cri-client v0.36.3 h1:WJDkJi43siWEUPyChC4ag9xUannsyW/TfL4OgLUsYOA=
k8s.io/cri-client v0.37.2 h1:tksqy98CYh/5wDxgWHflZ4QKU7cF50ES+gsZi/ybPik=
k8s.io/csi-translation-lib v0.36.3 h1:C0bncvnjwMGNiBwHbukjiTMhyl2V0QFDH+en8m1q5bo=
k8s.io/csi-translation-lib v0.37.2 h1:SfDJ0/2gyBSvmEqVsw+xlgA3ac2kD4vK4GNeULO+uNk=
k8s.io/dynamic-resource-allocation v0.36.3 h1:5cDyWiGhqJMrp8UwdgAqHcDkZHQ7wFhIK4aTr3OgFrI=
k8s.io/dynamic-resource-allocation v0.37.2 h1:HpaB0hW3oBDNVhpDYnceTanFeaRcDRmduTpdbf4kjAs=
k8s.io/endpointslice v0.36.3 h1:5q2Vn5IP9yDCFIb0zNaRWXV59srZbqzhhUxf3qkcL+E=
k8s.io/endpointslice v0.37.2 h1:sKKzhCXpPaEbc0d7nYHDh9beabNxpcMmc/I5SlHFB88=
k8s.io/externaljwt v0.36.3 h1:a4dbIxCyBLmiz2dhxQfbRPTDdy6RF6KVh492SN346L0=
k8s.io/externaljwt v0.37.2 h1:egsM4R0CHSGwsy1zpa1td1Q38V/1B2W31efYYv21LyY=
k8s.io/kms v0.36.3 h1:uHY7Vfec0IhuTWjO6u/u/6hE1DcZmCB7Xm/6+GQxkNs=
k8s.io/kms v0.37.2 h1:d9u/eizxE9pSa3jjnvoaLvvb9LwiypwkZ9xD4I4ZbTo=
k8s.io/kube-aggregator v0.36.3 h1:eypRCZKyGx3u9TLdnLva47l6R/67Zs9h9FQI+uMruaY=
k8s.io/kube-aggregator v0.37.2 h1:cUT/C/WM3UtoREoTYthSCFxldpdG3y5q9UniWYxcmPE=
k8s.io/kube-controller-manager v0.36.3 h1:aR1L81tpNzINGkGy9x00Vfpm0Cx9+EivY48ugpsy6+A=
k8s.io/kube-controller-manager v0.37.2 h1:N/yqaHHyiiyEID4TLtjUn8j1mtnlFsUkM0llsmsKlEs=
k8s.io/kube-proxy v0.36.3 h1:ipoTO/dvNTpbpW6RAvCSCMh1zB2WwpEBkNLLdrz1h7U=
k8s.io/kube-proxy v0.37.2 h1:8SLRQGq7H/4Or3AF4NOQvVjgpsiZ5/fsIpfc2ZA5MDo=
k8s.io/kube-scheduler v0.36.3 h1:sc18quI2CgvH23oU1eJIQ21ivJENzjH4cxATqLSSubM=
k8s.io/kube-scheduler v0.37.2 h1:MC2G83PTIN0KM7RppCLaqL93iPhuKvCbwfnDiAFbFpw=
k8s.io/kubectl v0.36.3 h1:TesKp+XYQEjPYoFvuobcVnuvira2+/xAVlq//+kksaI=
k8s.io/kubectl v0.37.2 h1:AGGIhrGSsXtrL6BZWf7Hp2K9yB+2qdx7wovsOP1MiCg=
k8s.io/kubelet v0.36.3 h1:dRzEnhHk35Opy6wjWR4YBcN5RI9lB2npUY37TghFuPU=
k8s.io/kubelet v0.37.2 h1:AaRApKAcqmMD4pxmsxdghJHbTNfOxYOIlPCARw8+01A=
k8s.io/kubernetes v1.36.3 h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=
k8s.io/kubernetes v1.37.2 h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=
k8s.io/metrics v0.36.3 h1:NDKceAgWS8CJCdDtM5kFACkBOa9Lxia1jUiibJfvUgQ=
k8s.io/metrics v0.37.2 h1:CeIZd07BO8vuraDyd0ooQmsLi2Rutj76zThEf72rcWU=
k8s.io/mount-utils v0.36.3 h1:X/18T+WI3UfJvcGa2MMdSBOL5zjT7fIcB7zGHAv6UDk=
k8s.io/mount-utils v0.37.2 h1:OUmG8B4N09N1DcJPd3jADyxQoC4212cDtVAGox7Oe3g=
k8s.io/pod-security-admission v0.36.3 h1:nWRx42eQwSkapa0TPwtho35adfSziRmPYuzwU+4xPpo=
k8s.io/pod-security-admission v0.37.2 h1:mnfCR7fUzsvtiSiYZD9HTcTJ9cpJDMnQn++9Rq1mlrc=
k8s.io/streaming v0.36.3 h1:9rAaqBk0C0Pc7+/fqGekj07NV+/Xrew58p647A0JT8w=
k8s.io/streaming v0.37.2 h1:xmzp9nbqIbjvsRcqrBYa+K5XPQ6Jy/Dm3zZ8mN916AI=
sigs.k8s.io/kwok v0.8.0 h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ=
"""
