package serve_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/serve"
)

// With the store in PostgreSQL, an agent gets no further than with a file: it finds neither the address of the database with its
// password nor a token, it cannot connect to the database, and it cannot use the API. Nobody approves its calls here.
//
// SPEC V-05, P-12
func TestAgentsAreKeptOutOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	const password = "pw4Hx9Zq2LmN7c"
	for _, mode := range permit.Modes() {
		t.Run(mode.Name, func(t *testing.T) {
			t.Parallel()
			dsn, err := server.Create(t.Context(), "kept_out_"+mode.Name, "template1")
			if err != nil {
				t.Fatal(err)
			}
			address, err := url.Parse(dsn)
			if err != nil {
				t.Fatal(err)
			}
			socket := filepath.Join(address.Query().Get("host"), ".s.PGSQL.5432")
			if info, err := os.Stat(socket); err != nil || info.Mode()&os.ModeSocket == 0 {
				t.Fatalf("%s is no socket: %v", socket, err)
			}
			address.User = url.UserPassword("belay", password) // the server trusts everybody who can connect
			secret := address.String()
			var settings string
			w := newWorld(t, nil, func(h *host.Options, _ *serve.Options) {
				h.Settings = append(h.Settings, host.Setting{Path: "mode", Value: mode.Name})
				h.Environ = []string{"BELAY_STORE=" + secret} // it is in both places
				settings = filepath.Join(h.UserDir, "belay", "belay.yaml")
				if err := errors.Join(os.MkdirAll(filepath.Dir(settings), 0o700), os.WriteFile(settings, []byte("store: "+secret+"\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
			})
			local, err := w.tokens.Local()
			if err != nil {
				t.Fatal(err)
			}
			parked := w.turn("admin", w.newSession(), `call ask_user {"question": "May I?"}`).Result
			if len(parked.Approvals) != 1 {
				t.Fatalf("the turn ends with %+v, want a question", parked)
			}
			approval := parked.Approvals[0]
			decide := "UPDATE belay.approvals SET decided = 1; UPDATE approvals SET decided = 1; SELECT 'the database answers'"
			attempts := map[string]string{
				"print the environment":              shell("env; cat /proc/self/environ /proc/$PPID/environ /proc/[0-9]*/environ"),
				"read the settings":                  fmt.Sprintf(`call read {"path": %q}`, settings),
				"search the settings":                fmt.Sprintf(`call grep {"pattern": "postgres", "path": %q}`, filepath.Dir(settings)),
				"print the settings":                 shell("cat " + settings),
				"print the settings by a variable":   shell("f=belay; cd " + filepath.Dir(settings) + " && cat ./$f.y*ml"),
				"copy the settings":                  shell("cp " + settings + " ./copied.txt && cat copied.txt"),
				"connect with psql":                  shell("psql '" + dsn + "' -At -c \"" + decide + "\""),
				"connect to the socket":              shell("python3 -c 'import socket\ns=socket.socket(socket.AF_UNIX); s.connect(\"" + socket + "\"); s.sendall(bytes([0,0,0,8,4,210,22,47])); print(\"the database\", \"answers\", s.recv(1))'"),
				"read the files of the server":       shell("cat " + server.Data() + "/PG_VERSION && echo the database answers"),
				"call the API without a token":       shell("curl -s -X POST -H 'Content-Type: application/json' -d '{\"hash\":\"x\",\"allow\":true}' " + w.url + "/v1/approvals/" + approval + "/decision"),
				"call the API with the token's file": shell("curl -s -H \"Authorization: Bearer $(cat " + w.tokens.LocalFile() + ")\" " + w.url + "/v1/approvals"),
				"print the token":                    shell("cat " + w.tokens.LocalFile()),
			}
			confined := sandbox.Find(t.Context(), nil).Kind() != sandbox.None
			if !confined { // the floor alone does not understand every command
				delete(attempts, "print the settings by a variable")
			}
			for what, task := range attempts {
				id := w.newSession()
				w.turn("admin", id, task)
				said := string(w.send("admin", "GET", "/v1/sessions/"+id+"/messages", nil, nil).body)
				for name, value := range map[string]string{"password": password, "local token": local, "admin token": w.secret["admin"]} {
					if strings.Contains(said, value) {
						t.Errorf("%s: the agent has the %s", what, name)
					}
				}
				for _, word := range []string{"\\nthe database answers", `\"approvals\":`} {
					if strings.Contains(said, word) {
						t.Errorf("%s: the agent gets an answer: %s", what, said)
					}
				}
				var a struct{ Decided any }
				w.call("admin", "GET", "/v1/approvals/"+approval, nil, &a)
				if a.Decided != nil {
					t.Fatalf("%s: the approval is decided: %v", what, a.Decided)
				}
			}
			var one struct{ Hash string }
			w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
			w.call("admin", "POST", "/v1/approvals/"+approval+"/decision", map[string]any{"hash": one.Hash, "allow": true, "answer": "yes"}, nil) // a person can
		})
	}
}
