package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// What names of volumes and snapshots are made of: they name files.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// files are those of volumes and snapshots, each called by its name, which is its identity. A file has its size from the beginning, and
// takes the room of what was written.
type files struct {
	directory string
	// Who works on which of them.
	locks sync.Map
}

// lock keeps all others from a volume or snapshot until the function that it returns is called.
func (f *files) lock(id string) func() {
	lock, _ := f.locks.LoadOrStore(id, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

func (f *files) path(id string) string {
	return filepath.Join(f.directory, id)
}

// find fails if there is no such volume or snapshot.
func (f *files) find(id string) (os.FileInfo, error) {
	if !plain.MatchString(id) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no name of a volume or snapshot", id)
	}
	info, err := os.Stat(f.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "there is no %s", id)
	}
	return info, err
}

// make makes a file whole or not at all, unless it is there.
func (f *files) make(id string, fill func(path string) error) (os.FileInfo, error) {
	defer f.lock(id)()
	info, err := f.find(id)
	if status.Code(err) != codes.NotFound {
		return info, err
	}
	half := f.path(".half." + id)
	if err = fill(half); err == nil {
		err = os.Rename(half, f.path(id))
	}
	if err != nil {
		_ = os.Remove(half)
		return nil, err
	}
	return f.find(id)
}

// remove is no error if there is none.
func (f *files) remove(id string) error {
	defer f.lock(id)()
	_, err := f.find(id)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err == nil {
		err = os.Remove(f.path(id))
	}
	return err
}

// copy copies a volume or snapshot as it is at one moment. To freeze the file system meanwhile would be the way of other drivers: if
// that were killed, the file system would stay frozen. So this copies again if anything was written meanwhile.
func (f *files) copy(ctx context.Context, id, to string) error {
	defer f.lock(id)()
	if _, err := f.find(id); err != nil {
		return err
	}
	device, err := f.device(ctx, id)
	for err == nil {
		if device != "" {
			if _, err = command(ctx, "blockdev", "--flushbufs", device); err != nil {
				break
			}
		}
		before := written(device)
		_, err = command(ctx, "cp", "--sparse=always", "--reflink=auto", f.path(id), to)
		if err == nil && written(device) == before {
			break
		}
	}
	return err
}

// device finds the loop device of a volume, which is empty if it is not mounted.
func (f *files) device(ctx context.Context, id string) (string, error) {
	return command(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", f.path(id))
}

// written says how many sectors were written to a device until now.
func written(device string) string {
	counters, _ := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "stat"))
	if fields := strings.Fields(string(counters)); len(fields) > 6 {
		return fields[6]
	}
	return ""
}

// command runs a command and returns what it prints.
func command(ctx context.Context, program string, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	text := strings.TrimSpace(string(output))
	if err != nil {
		return "", status.Errorf(codes.Internal, "%s %s: %v: %s", program, strings.Join(arguments, " "), err, text)
	}
	return text, nil
}
