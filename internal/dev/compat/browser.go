package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// browsers are the names of the programs, of which the first that exists runs.
var browsers = []string{"chromium", "chromium-browser", "google-chrome"}

// A browser is a worker in a page without a window, which takes requests from a server in this process.
type browser struct {
	requests chan request
	answers  chan answer
	server   *http.Server
	cmd      *exec.Cmd
	profile  string
}

func openBrowser(root string) (worker, error) {
	program, err := findBrowser()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "compat")
	if err != nil {
		return nil, err
	}
	b := &browser{requests: make(chan request), answers: make(chan answer), profile: profile}
	b.server = &http.Server{Handler: b.handler(root)}
	go b.server.Serve(listener)
	b.cmd = exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir="+profile,
		fmt.Sprintf("http://%s/web.html", listener.Addr()))
	if err := b.cmd.Start(); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func findBrowser() (string, error) {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("none of %v is on the PATH", browsers)
}

func (b *browser) handler(root string) http.Handler {
	mux := http.NewServeMux()
	sources := filepath.Join(root, "internal", "dev", "compat")
	mux.Handle("/", http.FileServer(http.Dir(sources)))
	mux.Handle("/ort/", http.StripPrefix("/ort/", http.FileServer(http.Dir(filepath.Join(root, ".compat", "web",
		"node_modules", "onnxruntime-web", "dist")))))
	mux.HandleFunc("/model", serveModel)
	mux.HandleFunc("/request", func(w http.ResponseWriter, r *http.Request) {
		select {
		case q := <-b.requests:
			json.NewEncoder(w).Encode(q)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/answer", func(_ http.ResponseWriter, r *http.Request) {
		var a answer
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			a = answer{Stage: "start", Error: err.Error()}
		}
		b.answers <- a
	})
	return mux
}

func (b *browser) ask(q request) answer {
	expired := time.After(timeout)
	select {
	case b.requests <- q:
	case <-expired:
		return answer{Stage: "start", Error: "the browser does not respond"}
	}
	select {
	case a := <-b.answers:
		return a
	case <-expired:
		return answer{Stage: "run", Error: "the browser does not respond"}
	}
}

func (b *browser) close() {
	b.server.Close()
	if b.cmd.Process != nil {
		b.cmd.Process.Kill()
		b.cmd.Wait()
	}
	os.RemoveAll(b.profile)
}

// serveModel sends a model by its path.
func serveModel(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	if filepath.Ext(path) != ".onnx" {
		http.NotFound(w, r)
		return
	}
	http.ServeFile(w, r, path)
}
