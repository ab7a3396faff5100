package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A full disk ends workers with exit code 1, which is retried: when there is space again, the list is complete.
func testFullDisk(t *testing.T, c *cluster) {
	const models = 24
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chown(disk, imageUser, imageUser); err != nil {
		t.Fatal(err)
	}
	s := c.site(t, "full", disk)
	makeModels(t, c.image, s.folder, models)
	one, reference := compressed(t, c.image, s.folder, 0)
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 64<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}

	m := listManifest(t)
	began := time.Now()
	s.create(t, m)
	wait(t, "a worker with a full disk", time.Minute, func() bool { return len(s.containers(m.name())) > 0 })
	full := s.containers(m.name())[0]
	if text := tail(full.output); full.Code != 1 || !strings.Contains(text, "no space left on device") {
		t.Errorf("a worker with a full disk ends with exit code %d: %s", full.Code, text)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.complete(t, m.name(), 5*time.Minute)
	all := s.containers(m.name())
	c.results = append(c.results, result{"full disk, 24 models", count(all, 1), time.Since(began).Seconds(), one, all,
		nil})
	sameFiles(t, filepath.Join(s.folder, "compressed"), filepath.Join(reference, "compressed"), indexFiles...)
}

// count is the number of containers that ended with an exit code.
func count(all []ended, code int) (n int) {
	for _, e := range all {
		if e.Code == code {
			n++
		}
	}
	return n
}

// kube-controller-manager is killed while a Job runs and is started again when all its pods have ended: the Job
// continues, and each index runs once.
func testManager(t *testing.T, c *cluster) {
	const models, indexes, parallel = 64, 16, 4
	s := c.site(t, "manager", dataFolder(t))
	makeModels(t, c.image, s.folder, models)
	one, reference := compressed(t, c.image, s.folder, 0)

	m := listManifest(t).replaced(t, "parallelism: 16", "parallelism: 4")
	began := time.Now()
	s.create(t, m)
	wait(t, "the first containers", time.Minute, func() bool { return len(s.containers(m.name())) >= parallel })
	kill(c.manager)
	wait(t, "the running containers", time.Minute, s.idle)
	if n := len(s.containers(m.name())); n >= indexes {
		t.Errorf("all %d containers had ended before the controller was killed", n)
	}
	c.startManager()
	s.complete(t, m.name(), 5*time.Minute)
	all := s.containers(m.name())
	c.results = append(c.results, result{"controller restarted, 64 models", 0, time.Since(began).Seconds(), one, all,
		nil})
	if len(all) != indexes || count(all, 0) != indexes {
		t.Errorf("%d containers, of which %d have succeeded, for %d indexes", len(all), count(all, 0), indexes)
	}
	sameFiles(t, filepath.Join(s.folder, "compressed"), filepath.Join(reference, "compressed"), indexFiles...)
}
