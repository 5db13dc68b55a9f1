#!/bin/sh
# Makes a machine one that can join a plane, as an administrator would: a container runtime, a network for pods, a kubelet
# that waits to be told what to do, and a resolver that knows the names of planes.
#   setup.sh ADDRESS PODS ZONE RESOLVER...
# ADDRESS is the machine's, PODS the network of its pods, ZONE that of the planes' names, RESOLVER who knows it (host:port).
# The programs are below /opt; the image of containers comes on standard input.
set -eu
address=$1 pods=$2 zone=$3
shift 3

# A machine of this lab is a container itself: what it may not write to is what only the host may, elsewhere.
for each in /sys/fs/cgroup/*; do
  case $each in */systemd | */unified) ;; *) [ -L "$each" ] || mount -o remount,bind,rw "$each" ;; esac
done
mount -o remount,bind,rw /proc/sys
mount --make-rshared /
systemctl daemon-reexec
timeout 20 sh -c 'until systemctl daemon-reload 2> /dev/null; do sleep 0.05; done'  # while it does that it answers nobody

ln -s /opt/kubernetes/* /opt/containerd/* /opt/runc/* /opt/dns/coredns /usr/local/bin/
mkdir -p /etc/containerd /etc/cni/net.d /etc/kubernetes/pki /etc/systemd/system/kubelet.service.d

echo "$address $(hostname)" >> /etc/hosts
echo "nameserver $address" > /etc/resolv.conf
cat > /etc/resolver.conf <<END
.:53 {
  bind $address
  forward $zone $* {
    max_fails 1
  }
}
END
cat > /etc/systemd/system/resolver.service <<END
[Service]
ExecStart=/usr/local/bin/coredns -conf /etc/resolver.conf
Restart=always
END

cat > /etc/containerd/config.toml <<END
version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "quarterdeck.test/work:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/opt/cni"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
  BinaryName = "/opt/plain/runtime"
END
cat > /etc/cni/net.d/10-pods.conflist <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local",
 "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
cat > /etc/systemd/system/containerd.service <<END
[Service]
Type=notify
ExecStart=/usr/local/bin/containerd
Delegate=yes
KillMode=process
Restart=always
END
cat > /etc/systemd/system/kubelet.service <<END
[Unit]
Wants=containerd.service
[Service]
ExecStart=/usr/local/bin/kubelet
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
END
# As the kubeadm package has it.
cat > /etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<'END'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
END
systemctl daemon-reload
systemctl enable --quiet kubelet
systemctl start resolver containerd
ctr --namespace k8s.io images import --no-unpack - > /dev/null 2>&1
