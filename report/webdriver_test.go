package report

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// A browser is Chromium without a window, driven through chromedriver: W3C WebDriver 2, and commands of the DevTools
// protocol.
type browser struct {
	t       *testing.T
	session string // URL
}

// openBrowser starts a browser for the test. Where there is none it skips the test, or fails it where CI=true.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes ten seconds")
	}
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("pages are not tested in a browser: %v (Debian: chromium, chromium-driver)", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	cmd := exec.Command(driver, "--port="+address[strings.LastIndexByte(address, ':')+1:])
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	b := &browser{t: t, session: "http://" + address}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := b.request("GET", "/status", nil); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	b.start()
	t.Cleanup(func() { b.request("DELETE", "", nil) })
	return b
}

func (b *browser) start() {
	b.t.Helper()
	options := map[string]any{"args": []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"}}
	var session struct {
		ID string `json:"sessionId"`
	}
	b.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": options, "goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"unhandledPromptBehavior": "ignore",
	}}}, &session)
	b.session += "/session/" + session.ID
}

// request sends a command and returns the value of the response.
func (b *browser) request(method, path string, body any) (json.RawMessage, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, b.session+path, content)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %.300s", path, answer.Value)
	}
	return answer.Value, nil
}

// call sends a command and decodes the value of the response.
func (b *browser) call(method, path string, body, into any) {
	b.t.Helper()
	value, err := b.request(method, path, body)
	if err == nil && into != nil {
		err = json.Unmarshal(value, into)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// tools sends a command of the DevTools protocol.
func (b *browser) tools(command string, parameters map[string]any, into any) {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": command, "params": parameters}, into)
}

// open loads a page, from a file.
func (b *browser) open(write func(io.Writer) error) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "page.html")
	var text bytes.Buffer
	if err := write(&text); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.call("POST", "/url", map[string]any{"url": "file://" + path}, nil)
}

// show sets the width of the screen and the color scheme.
func (b *browser) show(width int, scheme string) {
	b.t.Helper()
	b.tools("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.tools("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// eval runs the body of a function in the page and decodes what it returns.
func (b *browser) eval(body string, into any) {
	b.t.Helper()
	b.call("POST", "/execute/sync", map[string]any{"script": body, "args": []any{}}, into)
}

// keys presses keys, each a rune: of a text, or of the table in section 17.4.2 of WebDriver.
func (b *browser) keys(keys string) {
	b.t.Helper()
	var actions []map[string]string
	for _, k := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": string(k)},
			map[string]string{"type": "keyUp", "value": string(k)})
	}
	b.call("POST", "/actions",
		map[string]any{"actions": []map[string]any{{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

const (
	keyTab   = "\ue004"
	keyEnter = "\ue007"
)

// console returns the messages since the last call: errors of scripts, and violations of the policy.
func (b *browser) console() []string {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.call("POST", "/se/log", map[string]any{"type": "browser"}, &entries)
	var messages []string
	for _, e := range entries {
		messages = append(messages, e.Level+": "+e.Message)
	}
	return messages
}

// violations checks the page with axe-core, all of its rules that are about WCAG 2.1 AA and good practice.
func (b *browser) violations() []string {
	b.t.Helper()
	var found []string
	b.eval(axe(b.t)+`; return axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + ": " + n.failureSummary)))`, &found)
	return found
}

// axe is the script of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	pattern := filepath.Join(filepath.Dir(conform.Python(t)), "..", "lib", "python*", "site-packages", "axe_core_python",
		"axe.min.js")
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no axe-core at %s: %v", pattern, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// screenshot writes the whole page as a PNG into the folder that PAGES names.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("PAGES")
	if folder == "" {
		return
	}
	var shot struct{ Data string }
	var height, width int
	b.eval(`return Math.min(8000, document.documentElement.scrollHeight)`, &height)
	b.eval(`return document.documentElement.clientWidth`, &width)
	clip := map[string]int{"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
	b.tools("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": clip}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
