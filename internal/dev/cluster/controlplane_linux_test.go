package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// token authenticates the tests and the controller manager.
const token = "loopback"

// A controlPlane is etcd, kube-apiserver and kube-controller-manager.
type controlPlane struct {
	api
	t            *testing.T // whose end is that of the programs
	program, dir string
	manager      *exec.Cmd
}

// startControlPlane starts a control plane that runs until the test ends.
func startControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	c := &controlPlane{t: t, program: built(t, "controlplane"), dir: t.TempDir()}
	files := map[string][]byte{"tokens.csv": []byte(token + `,admin,1,"system:masters"` + "\n")}
	files["service.key"], files["service.pub"] = keys(t)
	for name, text := range files {
		if err := os.WriteFile(c.path(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, peer, secure := freeAddress(t), freeAddress(t), freeAddress(t)
	c.run("etcd", "--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--listen-client-urls", "http://"+client,
		"--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer)
	host, port, _ := net.SplitHostPort(secure)
	c.url = "https://" + secure
	c.run("kube-apiserver", "--etcd-servers", "http://"+client, "--bind-address", host, "--advertise-address", host,
		"--secure-port", port, "--cert-dir", c.path("certificates"),
		"--service-account-issuer", c.url, "--service-account-signing-key-file", c.path("service.key"),
		"--service-account-key-file", c.path("service.pub"),
		"--token-auth-file", c.path("tokens.csv"), "--authorization-mode", "RBAC",
		"--disable-admission-plugins", "ServiceAccount", "--service-cluster-ip-range", "10.96.0.0/16",
		"--endpoint-reconciler-type", "none")
	authority := c.path("certificates", "apiserver.crt")
	wait(t, "kube-apiserver", time.Minute, func() bool {
		text, err := os.ReadFile(authority)
		if err != nil {
			return false
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		answer, err := c.open(t.Context(), http.MethodGet, "/readyz", asJSON, nil)
		if err != nil {
			return false
		}
		defer answer.Close()
		state, err := io.ReadAll(answer)
		return err == nil && string(state) == "ok"
	})
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: loopback, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: admin, user: {token: %q}}]
contexts: [{name: loopback, context: {cluster: loopback, user: admin}}]
current-context: loopback
`, c.url, authority, token)
	if err := os.WriteFile(c.path("kubeconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c.startManager()
	return c
}

// startManager starts kube-controller-manager with the controller of Jobs.
func (c *controlPlane) startManager() {
	host, port, _ := net.SplitHostPort(freeAddress(c.t))
	c.manager = c.run("kube-controller-manager", "--kubeconfig", c.path("kubeconfig"),
		"--controllers", "job-controller", "--leader-elect=false",
		"--bind-address", host, "--secure-port", port, "--cert-dir", c.path("manager"))
}

func (c *controlPlane) path(names ...string) string {
	return filepath.Join(append([]string{c.dir}, names...)...)
}

// run starts one of the programs, whose output is in a file of its name.
func (c *controlPlane) run(name string, args ...string) *exec.Cmd {
	return daemon(c.t, c.path(name+".log"), exec.Command(c.program, append([]string{name}, args...)...))
}

// daemon starts a program that runs until the test ends; its output is appended to a file, whose end is printed if the
// test fails.
func daemon(t *testing.T, output string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	log, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill(cmd)
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(output), tail(output))
		}
	})
	return cmd
}

// kill ends a program that may have ended.
func kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// tail is the end of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// wait waits until done, for a limited time.
func wait(t *testing.T, what string, limit time.Duration, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// freeAddress is an address of the loopback interface with a free port.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// keys is a new pair of keys, for tokens of service accounts, as PEM.
func keys(t *testing.T) (private, public []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	private = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text})
}

// built is the path of a file that make test-cluster has built in .cluster.
func built(t *testing.T, name string) string {
	t.Helper()
	root, err := conform.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, ".cluster", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make test-cluster", err)
	}
	return path
}
