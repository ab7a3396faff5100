package cluster

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// slurmConfiguration is the configuration of the cluster: one node with more CPUs than it has, so that many tasks run at a time.
const slurmConfiguration = `ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%[1]s
SlurmUser=root
AuthInfo=socket=%[2]s/munge.socket
PluginDir=%[3]s
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=loopback NodeHostname=%[4]s NodeAddr=127.0.0.1 Port=%[5]s CPUs=16 RealMemory=16384
PartitionName=all Nodes=loopback Default=YES MaxTime=INFINITE State=UP
`

// startSlurm starts munged, slurmctld and slurmd of .cluster/slurm until the test ends. Commands of the test, and jobs, find Slurm's programs and that of
// an image in PATH.
func startSlurm(t *testing.T, image string) {
	t.Helper()
	programs, dir := built(t, "slurm"), t.TempDir()
	libraries, sbin := filepath.Join(programs, "usr", "lib", "x86_64-linux-gnu"), filepath.Join(programs, "usr", "sbin")
	plugins, configuration, socket := filepath.Join(libraries, "slurm-wlm"), filepath.Join(dir, "slurm.conf"), filepath.Join(dir, "munge.socket")
	t.Setenv("SLURM_CONF", configuration)
	t.Setenv("LD_LIBRARY_PATH", libraries+":"+plugins)
	t.Setenv("PATH", strings.Join([]string{filepath.Join(image, "usr", "bin"), filepath.Join(programs, "usr", "bin"), os.Getenv("PATH")}, ":"))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, controller, _ := net.SplitHostPort(freeAddress(t))
	_, node, _ := net.SplitHostPort(freeAddress(t))
	key := make([]byte, 128)
	_, _ = rand.Read(key)
	err = cmp.Or(
		os.WriteFile(configuration, fmt.Appendf(nil, slurmConfiguration, controller, dir, plugins, host, node), 0o600),
		os.WriteFile(filepath.Join(dir, "munge.key"), key, 0o600),
		os.Mkdir(filepath.Join(dir, "state"), 0o755),
		os.Mkdir(filepath.Join(dir, "spool"), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		daemon(t, filepath.Join(dir, name+".log"), exec.Command(filepath.Join(sbin, name), args...))
	}
	run("munged", "--foreground", "--force", "--socket", socket, "--key-file", filepath.Join(dir, "munge.key"), "--pid-file", filepath.Join(dir, "munged.pid"),
		"--seed-file", filepath.Join(dir, "munged.seed"), "--log-file", filepath.Join(dir, "munged.messages"))
	wait(t, "munged", time.Minute, func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	run("slurmctld-wlm", "-D", "-f", configuration)
	run("slurmd-wlm", "-D", "-N", "loopback", "-f", configuration, "-d", filepath.Join(sbin, "slurmstepd-wlm"))
	wait(t, "slurmd", time.Minute, func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--format=%t").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	})
}
