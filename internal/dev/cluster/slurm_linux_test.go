package cluster

import (
	"cmp"
	crypto "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// slurmConfiguration is that of a cluster of one node with more CPUs than it has, so that many tasks run at a time. A
// requeued job waits until its credentials have expired.
const slurmConfiguration = `ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=%[1]s
SlurmUser=root
AuthInfo=socket=%[2]s/munge.socket,cred_expire=5
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

// TestSlurm runs a list and a plan on Slurm.
func TestSlurm(t *testing.T) {
	requested(t)
	image := buildImage(t)
	startSlurm(t, image)
	t.Run("list", func(t *testing.T) { testSlurmList(t, image) })
	t.Run("plan", testSlurmPlan)
}

// The array of the guide, whose tasks get SIGTERM or are requeued at random, has the files of one process.
func testSlurmList(t *testing.T, image string) {
	folder := dataFolder(t)
	makeModels(t, image, folder, 100)
	_, reference := compressed(t, image, folder, 0)
	script := filepath.Join(folder, "list.sh")
	if err := os.WriteFile(script, []byte(guideBlock(t, "bash", "#!/bin/sh\n#SBATCH")), 0o755); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(output(t, folder, "sbatch", "--parsable", script))
	terminated, requeued := interruptAtRandom(t, id, 12)
	completed(t, id)
	t.Logf("%d processes got SIGTERM, %d tasks were requeued", terminated, requeued)
	sameFiles(t, filepath.Join(folder, "compressed"), filepath.Join(reference, "compressed"), indexFiles...)
}

// The script that plan prints submits workers, which are interrupted at random, and a job that completes the result:
// that of one process.
func testSlurmPlan(t *testing.T) {
	folder := t.TempDir()
	realModel(t, folder, miniLM, tokens)
	command := "quantize --method weight-int4 --algo hqq --data sms800_tokens.npz --limit 16 model.onnx"
	output(t, folder, "sh", "-c", strings.Replace("mcompress "+command, "quantize",
		"quantize --data-files 8 -o alone/", 1))
	text := output(t, folder, "sh", "-c", "mcompress plan -n 8 -o divided --emit slurm -- "+command+" | sh")
	var work, finalize string
	if _, err := fmt.Sscanf(text, "workers: job %s then job %s", &work, &finalize); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	work = strings.TrimSuffix(work, ",")
	terminated, requeued := interruptAtRandom(t, work, 6)
	completed(t, work)
	completed(t, finalize)
	t.Logf("%d processes got SIGTERM, %d tasks were requeued", terminated, requeued)
	sameFiles(t, filepath.Join(folder, "divided"), filepath.Join(folder, "alone"), planFiles...)
}

// output is what a command prints on stdout.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	var stderr strings.Builder
	c.Stderr = &stderr
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, &stderr)
	}
	return string(text)
}

// interruptAtRandom sends SIGTERM to processes of tasks of a job, or requeues the tasks, until it has done so n times
// or the job has ended; it returns how often it did either. A task gets SIGTERM once, as its script has few attempts.
func interruptAtRandom(t *testing.T, job string, n int) (terminated, requeued int) {
	t.Helper()
	t.Logf("interruptions of seed %d", seed)
	rng, once := rand.New(rand.NewPCG(seed, 1)), map[string]bool{}
	for terminated+requeued < n {
		time.Sleep(time.Duration(200+rng.IntN(600)) * time.Millisecond)
		if queue(t, job, "pending,running,completing") == "" {
			break
		}
		tasks := strings.Fields(queue(t, job, "running"))
		if len(tasks) == 0 {
			continue
		}
		// A task that has just ended is an error of these commands.
		switch task := tasks[rng.IntN(len(tasks))]; {
		case rng.IntN(2) == 0 && !once[task]:
			once[task] = true
			if exec.Command("scancel", "--signal=TERM", task).Run() == nil {
				terminated++
			}
		default:
			if exec.Command("scontrol", "requeue", task).Run() == nil {
				requeued++
			}
		}
	}
	return terminated, requeued
}

// queue is the list of the tasks of a job that are in a state.
func queue(t *testing.T, job, state string) string {
	t.Helper()
	return output(t, "", "squeue", "--noheader", "--array", "--states="+state, "--format=%i", "--jobs="+job)
}

// completed waits until the tasks of a job have ended, and checks that all have succeeded.
func completed(t *testing.T, job string) {
	t.Helper()
	var states string
	wait(t, "job "+job, 10*time.Minute, func() bool {
		states = output(t, "", "squeue", "--noheader", "--array", "--states=all", "--format=%T", "--jobs="+job)
		return !strings.Contains(states, "PENDING") && !strings.Contains(states, "RUNNING") &&
			!strings.Contains(states, "COMPLETING")
	})
	for _, state := range strings.Fields(states) {
		if state != "COMPLETED" {
			t.Errorf("job %s: %s", job, output(t, "", "scontrol", "show", "job", job, "--oneliner"))
			return
		}
	}
}

// startSlurm starts munged, slurmctld and slurmd of .cluster/slurm until the test ends. Commands of the test, and jobs,
// find Slurm's programs and that of an image in PATH.
func startSlurm(t *testing.T, image string) {
	t.Helper()
	programs, dir := built(t, "slurm"), t.TempDir()
	libraries, sbin := filepath.Join(programs, "usr", "lib", "x86_64-linux-gnu"), filepath.Join(programs, "usr", "sbin")
	plugins, configuration, socket := filepath.Join(libraries, "slurm-wlm"), filepath.Join(dir, "slurm.conf"),
		filepath.Join(dir, "munge.socket")
	t.Setenv("SLURM_CONF", configuration)
	t.Setenv("LD_LIBRARY_PATH", libraries+":"+plugins)
	t.Setenv("PATH", strings.Join([]string{filepath.Join(image, "usr", "bin"), filepath.Join(programs, "usr", "bin"),
		os.Getenv("PATH")}, ":"))
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, controller, _ := net.SplitHostPort(freeAddress(t))
	_, node, _ := net.SplitHostPort(freeAddress(t))
	key := make([]byte, 128)
	_, _ = crypto.Read(key)
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
	run("munged", "--foreground", "--force", "--socket", socket, "--key-file", filepath.Join(dir, "munge.key"),
		"--pid-file", filepath.Join(dir, "munged.pid"),
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
