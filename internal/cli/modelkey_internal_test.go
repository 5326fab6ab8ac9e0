package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/config"
)

// All commands that list providers report a key file that other users can read.
func TestOpenKeyFilesAreTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("NOT COVERED: modes say nothing here")
	}
	for mode, told := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o620: true} {
		d := newDesk(t, nil)
		d.write(map[string]string{config.Name: "providers: {work: {url: 'http://127.0.0.1:1/v1', key_file: key}}\n", "key": aKey})
		file := filepath.Join(filepath.Dir(config.UserPath(filepath.Join(d.dir, "user"))), "key")
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		want := "chmod 600 " + file
		if p := d.offered(exitOK, "work")["work"]; p.Status != found || strings.Contains(p.Remedy, want) != told {
			t.Errorf("models, mode %o: %+v", mode, p)
		}
		d.run("models", "work")
		if out := strings.Join(strings.Fields(d.out.String()), " "); strings.Contains(out, "other users of this machine can read or change") != told {
			t.Errorf("models, mode %o: %s", mode, out)
		}
		d.run("doctor", "--json")
		if out := d.out.String(); strings.Contains(out, want) != told {
			t.Errorf("doctor, mode %o: %s", mode, out)
		}
	}
}

// The error about a rejected key shows where the key comes from, and its first and last
// characters. Another error says that a server needs a key and got none.
func TestRefusedKeysAreNamed(t *testing.T) {
	t.Parallel()
	for _, kind := range config.Kinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
			}))
			defer server.Close()
			d := newDesk(t, nil)
			entry := ": {kind: " + kind + ", url: \"" + server.URL + "\""
			d.write(map[string]string{
				config.Name: "providers:\n  variable" + entry + ", key_env: WORK_LOGIN}\n  file" + entry + ", key_file: key}\n  none" + entry + "}\n",
				"key":       aKey,
			})
			d.environ = []string{"WORK_LOGIN=" + aKey}
			file := filepath.Join(filepath.Dir(config.UserPath(filepath.Join(d.dir, "user"))), "key")
			for provider, want := range map[string]string{
				"variable": "no such key; the key was sk-…cdef from WORK_LOGIN",
				"file":     "no such key; the key was sk-…cdef from " + file,
				"none":     "no such key; no key was sent: set key_env or key_file under providers.none",
			} {
				if code := d.run("run", "--model", provider+"/m", "hello"); code != exitFailed || !strings.Contains(d.err.String(), want) {
					t.Errorf("exit code %d, want %q: %s", code, want, &d.err)
				}
				if strings.Contains(d.err.String(), aKey) {
					t.Errorf("the key is told: %s", &d.err)
				}
			}
		})
	}
}

// Belay reports at once that a local server is not running, or that an address has a web
// page instead of a model server.
func TestWhatIsNoServerIsToldAtOnce(t *testing.T) {
	t.Parallel()
	requests := make(chan struct{}, 10)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests <- struct{}{}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>log in"))
	}))
	defer page.Close()
	d := newDesk(t, nil)
	d.write(map[string]string{config.Name: "providers:\n  gone: {url: 'http://127.0.0.1:1/v1'}\n  page: {url: '" + page.URL + "'}\n"})
	for provider, want := range map[string]string{
		"gone": "no program listens at 127.0.0.1:1: start the server",
		"page": "the server answered text/html, which is not a model's response: check the URL, and check whether a proxy or a login page answered",
	} {
		if code := d.run("run", "--model", provider+"/m", "hello"); code != exitFailed || !strings.Contains(d.err.String(), want) {
			t.Errorf("exit code %d, want %q: %s", code, want, &d.err)
		}
		if strings.Contains(d.err.String(), "attempts") {
			t.Errorf("it was tried again: %s", &d.err)
		}
	}
	if n := len(requests); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}
