// A stock cloud controller manager for tests, whose cloud is upstream's fake one: every node is in it and has an
// address, every Service of type LoadBalancer gets one. Its node-ipam-controller is that of the stock program
// (k8s.io/kubernetes/cmd/cloud-controller-manager), for one cluster CIDR.
package main

import (
	"context"
	"io"
	"net"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/fake"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/flag"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	generic "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"
	"k8s.io/klog/v2"
	kcmnames "k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/nodeipam"
	"k8s.io/kubernetes/pkg/controller/nodeipam/ipam"
)

const maskOfNodes = 24

func main() {
	cloudprovider.RegisterCloudProvider("fake", func(io.Reader) (cloudprovider.Interface, error) {
		return &fake.Cloud{
			Provider:           "fake",
			EnableInstancesV2:  true,
			ExistsByProviderID: true,
			DisableRoutes:      true,
			ExternalIP:         net.ParseIP("192.0.2.10"),
			Zone:               cloudprovider.Zone{Region: "fake-region", FailureDomain: "fake-zone"},
			OverrideInstanceMetadata: func(_ context.Context, node *v1.Node) (*cloudprovider.InstanceMetadata, error) {
				return &cloudprovider.InstanceMetadata{
					ProviderID:    "fake://" + node.Name,
					NodeAddresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.0.2.20"}},
				}, nil
			},
		}, nil
	})
	settings, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		klog.Fatalf("options: %v", err)
	}
	controllers := app.DefaultInitFuncConstructors
	controllers[kcmnames.NodeIpamController] = app.ControllerInitFuncConstructor{
		InitContext: app.ControllerInitContext{ClientName: "node-controller"},
		Constructor: nodeIPAM,
	}
	aliases := names.CCMControllerAliases()
	aliases["nodeipam"] = kcmnames.NodeIpamController
	command := app.NewCloudControllerManagerCommand(
		settings, cloud, controllers, aliases, flag.NamedFlagSets{}, wait.NeverStop)
	os.Exit(cli.Run(command))
}

func cloud(completed *config.CompletedConfig) cloudprovider.Interface {
	wanted := completed.ComponentConfig.KubeCloudShared.CloudProvider
	found, err := cloudprovider.InitCloudProvider(wanted.Name, wanted.CloudConfigFile)
	if err != nil || found == nil {
		klog.Fatalf("cloud provider %q: %v", wanted.Name, err)
	}
	return found
}

func nodeIPAM(
	init app.ControllerInitContext, completed *config.CompletedConfig, cloud cloudprovider.Interface,
) app.InitFunc {
	shared := completed.ComponentConfig.KubeCloudShared
	return func(ctx context.Context, with generic.ControllerContext) (controller.Interface, bool, error) {
		if !shared.AllocateNodeCIDRs {
			return nil, false, nil
		}
		_, cidr, err := net.ParseCIDR(shared.ClusterCIDR)
		if err != nil {
			return nil, false, err
		}
		found, err := nodeipam.NewNodeIpamController(
			ctx, with.InformerFactory.Core().V1().Nodes(), cloud, with.ClientBuilder.ClientOrDie(init.ClientName),
			[]*net.IPNet{cidr}, nil, nil, []int{maskOfNodes}, ipam.CIDRAllocatorType(shared.CIDRAllocatorType))
		if err != nil {
			return nil, true, err
		}
		go found.Run(ctx)
		return nil, true, nil
	}
}
