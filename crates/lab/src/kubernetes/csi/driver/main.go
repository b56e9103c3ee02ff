// The CSI driver of the lab: volumes are file systems in files on this machine, mounted through loop devices.
//
// It is complete in what a load on volumes asks of a driver, and in nothing else. It knows one node, and keeps no state but the files.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var version = "development"

func main() {
	name := flag.String("name", "", "the driver's name")
	node := flag.String("node", "", "the node's name")
	directory := flag.String("directory", "", "where the files of volumes and snapshots are")
	endpoint := flag.String("endpoint", "", "the socket on which the driver listens")
	registrar := flag.String("registrar", "", "the socket on which kubelet asks for the driver, in its directory of plugins")
	flag.Parse()
	// Where what makes and mounts file systems is, which a path may lack.
	_ = os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	if err := run(*name, *node, *directory, *endpoint, *registrar); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name, node, directory, endpoint, registrar string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	files := &files{directory: directory}
	driver := grpc.NewServer(grpc.UnaryInterceptor(logFailures))
	csi.RegisterIdentityServer(driver, identity{name: name})
	csi.RegisterControllerServer(driver, controller{files: files})
	csi.RegisterNodeServer(driver, nodeServer{name: node, files: files})
	kubelet := grpc.NewServer()
	registration.RegisterRegistrationServer(kubelet, registrations{name: name, endpoint: endpoint})
	failed := make(chan error, 2)
	// kubelet asks the driver as soon as it sees the second socket.
	if err := errors.Join(serve(driver, endpoint, failed), serve(kubelet, registrar, failed)); err != nil {
		return err
	}
	defer driver.GracefulStop()
	defer kubelet.Stop()
	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-stop.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// serve replaces the socket of a process that was killed.
func serve(server *grpc.Server, path string, failed chan<- error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err == nil {
		go func() { failed <- server.Serve(listener) }()
	}
	return err
}

func logFailures(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	answer, err := handle(ctx, request)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", info.FullMethod, err)
	}
	return answer, err
}

type identity struct {
	csi.UnimplementedIdentityServer
	name string
}

func (i identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name, VendorVersion: version}, nil
}

func (identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}
	growth := &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE},
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: service}, {Type: growth}}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrations tells kubelet where the driver is.
type registrations struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

func (r registrations) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (registrations) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		fmt.Fprintln(os.Stderr, "kubelet refuses the driver:", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
