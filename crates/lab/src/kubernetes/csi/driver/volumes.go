package main

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// File systems have whole blocks.
const block = 4096

// controller makes and removes volumes and snapshots.
type controller struct {
	csi.UnimplementedControllerServer
	files *files
}

func (controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	var capabilities []*csi.ControllerServiceCapability
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		rpc := &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}}
		capabilities = append(capabilities, &csi.ControllerServiceCapability{Type: rpc})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

func (c controller) CreateVolume(
	ctx context.Context, request *csi.CreateVolumeRequest,
) (*csi.CreateVolumeResponse, error) {
	for _, capability := range request.VolumeCapabilities {
		if capability.GetBlock() != nil {
			return nil, status.Error(codes.InvalidArgument, "volumes have file systems: none is a device (volumeMode: Block)")
		}
	}
	source := request.VolumeContentSource.GetSnapshot().GetSnapshotId()
	if source == "" {
		source = request.VolumeContentSource.GetVolume().GetVolumeId()
	}
	info, err := c.files.make(request.Name, func(path string) error {
		if source != "" {
			// Its file system grows when it is mounted.
			if err := c.files.copy(ctx, source, path); err != nil {
				return err
			}
			return grow(path, request.CapacityRange)
		}
		if err := grow(path, request.CapacityRange); err != nil {
			return err
		}
		_, err := command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: request.Name, CapacityBytes: info.Size(), ContentSource: request.VolumeContentSource,
	}}, nil
}

func (c controller) DeleteVolume(
	_ context.Context, request *csi.DeleteVolumeRequest,
) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, c.files.remove(request.VolumeId)
}

// ControllerPublishVolume has nothing to do: the file is on the node. But volumes are attached to it, and detached before they are deleted.
func (c controller) ControllerPublishVolume(
	_ context.Context, request *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	_, err := c.files.find(request.VolumeId)
	return &csi.ControllerPublishVolumeResponse{}, err
}

func (controller) ControllerUnpublishVolume(
	context.Context, *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c controller) CreateSnapshot(
	ctx context.Context, request *csi.CreateSnapshotRequest,
) (*csi.CreateSnapshotResponse, error) {
	info, err := c.files.make(request.Name, func(path string) error {
		return c.files.copy(ctx, request.SourceVolumeId, path)
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: request.Name, SourceVolumeId: request.SourceVolumeId, SizeBytes: info.Size(), ReadyToUse: true,
		CreationTime: timestamppb.New(info.ModTime()),
	}}, nil
}

func (c controller) DeleteSnapshot(
	_ context.Context, request *csi.DeleteSnapshotRequest,
) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, c.files.remove(request.SnapshotId)
}

func (c controller) ControllerExpandVolume(
	_ context.Context, request *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	defer c.files.lock(request.VolumeId)()
	if _, err := c.files.find(request.VolumeId); err != nil {
		return nil, err
	}
	if err := grow(c.files.path(request.VolumeId), request.CapacityRange); err != nil {
		return nil, err
	}
	info, err := c.files.find(request.VolumeId)
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: info.Size(), NodeExpansionRequired: true}, nil
}

// grow makes a file, which may not be there yet, as large as a volume of that size is. It never shrinks.
func grow(path string, asked *csi.CapacityRange) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	size := (max(asked.GetRequiredBytes(), info.Size()) + block - 1) / block * block
	if limit := asked.GetLimitBytes(); limit > 0 && size > limit {
		return status.Errorf(codes.OutOfRange, "it needs %d bytes, and may have %d", size, limit)
	}
	return file.Truncate(size)
}

// nodeServer mounts volumes where kubelet wants them.
type nodeServer struct {
	csi.UnimplementedNodeServer
	name  string
	files *files
}

func (n nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (nodeServer) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	growth := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_EXPAND_VOLUME}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{
		{Type: &csi.NodeServiceCapability_Rpc{Rpc: growth}},
	}}, nil
}

func (n nodeServer) NodePublishVolume(
	ctx context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	id, at := request.VolumeId, request.TargetPath
	defer n.files.lock(id)()
	if _, err := n.files.find(id); err != nil {
		return nil, err
	}
	if isMounted(ctx, at) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	device, err := n.files.device(ctx, id)
	if err == nil && device == "" {
		// It may have grown, or be a copy of one that was mounted: e2fsck exits with 1 if it has mended something.
		script := `e2fsck -f -p "$0" || [ $? -eq 1 ] && resize2fs "$0"`
		_, err = command(ctx, "sh", "-c", script, n.files.path(id))
	}
	if err == nil {
		err = os.MkdirAll(at, 0o750)
	}
	if err == nil {
		// The device goes with its last mount. Nothing is written that nobody asked for, so that a copy is of one moment.
		options := "loop,noatime,noinit_itable"
		if request.Readonly {
			options += ",ro"
		}
		_, err = command(ctx, "mount", "-t", "ext4", "-o", options, n.files.path(id), at)
	}
	return &csi.NodePublishVolumeResponse{}, err
}

func (n nodeServer) NodeUnpublishVolume(
	ctx context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	defer n.files.lock(request.VolumeId)()
	if isMounted(ctx, request.TargetPath) {
		if _, err := command(ctx, "umount", request.TargetPath); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(request.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume lets the file system have all of the file. If this root lacks CAP_SYS_RESOURCE, that is when it is mounted again.
func (n nodeServer) NodeExpandVolume(
	ctx context.Context, request *csi.NodeExpandVolumeRequest,
) (*csi.NodeExpandVolumeResponse, error) {
	defer n.files.lock(request.VolumeId)()
	device, err := n.files.device(ctx, request.VolumeId)
	if err == nil {
		_, err = command(ctx, "losetup", "--set-capacity", device)
	}
	if err == nil {
		_, err = command(ctx, "resize2fs", device)
	}
	return &csi.NodeExpandVolumeResponse{}, err
}

// isMounted says whether anything is mounted at a place.
func isMounted(ctx context.Context, at string) bool {
	_, err := command(ctx, "findmnt", "--noheadings", "--mountpoint", at)
	return err == nil
}
