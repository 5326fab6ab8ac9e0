//go:build linux

package serve_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/permit"
	"github.com/belay-run/belay/sandbox"
	"github.com/belay-run/belay/serve"
)

// shell makes the task to run a command.
func shell(command string) string {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return "call shell " + string(input)
}

// An agent cannot use the API to approve its own calls, whatever its mode: it cannot read or
// forge a token, it finds none in its environment, it gets nowhere without one, and it cannot
// change the store. Nobody approves its calls here.
//
// SPEC V-05
func TestAgentsAreKeptOut(t *testing.T) {
	t.Parallel()
	for _, mode := range permit.Modes() {
		t.Run(mode.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil, func(h *host.Options, _ *serve.Options) {
				h.Environ = []string{secretVariable + "=" + secretInEnvironment}
				h.Settings = append(h.Settings, host.Setting{Path: "mode", Value: mode.Name})
			})
			local, err := w.tokens.Local()
			if err != nil {
				t.Fatal(err)
			}
			before, err := w.tokens.List()
			if err != nil {
				t.Fatal(err)
			}
			victim := w.newSession()
			parked := w.turn("admin", victim, `call ask_user {"question": "May I?"}`).Result
			if len(parked.Approvals) != 1 {
				t.Fatalf("the turn ends with %+v, want a question", parked)
			}
			approval := parked.Approvals[0]
			dir := filepath.Dir(w.tokens.LocalFile())
			forged := `{"name": "forged", "roles": ["admin"], "hash": "` + strings.Repeat("0", 64) + `"}`
			addr := strings.TrimPrefix(w.url, "http://")
			host, port, _ := strings.Cut(addr, ":")
			decision := fmt.Sprintf("%s/v1/approvals/%s/decision", w.url, approval)
			store := filepath.Join(w.dir, ".belay", "belay.db")
			attempts := map[string]string{
				"read the token":                       fmt.Sprintf(`call read {"path": %q}`, w.tokens.LocalFile()),
				"search the tokens":                    fmt.Sprintf(`call grep {"pattern": "belay_", "path": %q}`, dir),
				"print the token":                      shell("cat " + w.tokens.LocalFile()),
				"print the token through a variable":   shell("d=" + filepath.Dir(dir) + "; f=tok; cat $d/${f}ens/*.secret"),
				"copy the token":                       shell("cp -r " + dir + " ./copied && cat copied/*"),
				"link to the token":                    shell("ln -s " + dir + " link && cat link/local.secret"),
				"print the environment":                shell("env; cat /proc/self/environ /proc/$PPID/environ"),
				"forge a token":                        fmt.Sprintf(`call write {"path": %q, "content": %q}`, filepath.Join(dir, "forged.json"), forged),
				"forge a token with a command":         shell("echo '" + forged + "' > " + filepath.Join(dir, "forged.json")),
				"call the API without a token":         shell("curl -s -X POST -H 'Content-Type: application/json' -d '{\"hash\":\"x\",\"allow\":true}' " + decision),
				"call the API with the token's file":   shell("curl -s -H \"Authorization: Bearer $(cat " + w.tokens.LocalFile() + ")\" " + w.url + "/v1/approvals"),
				"call the API without curl":            shell("bash -c 'exec 3<>/dev/tcp/" + host + "/" + port + "; printf \"GET /v1/approvals HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n\" >&3; cat <&3'"),
				"call the API with the environment":    shell("curl -s -H \"Authorization: Bearer $" + secretVariable + "\" " + w.url + "/v1/approvals"),
				"overwrite the store":                  fmt.Sprintf(`call write {"path": %q, "content": "x"}`, store),
				"overwrite the store with a command":   shell("echo x > " + store),
				"decide in the store with a program":   shell("sqlite3 " + store + " \"UPDATE approvals SET decided = 1\""),
				"list the sockets of live events":      shell("ls " + store + "-live && echo the sockets are visible"),
				"forge a live event":                   shell("for s in " + store + "-live/*; do printf 'x events {\"session\":\"" + victim + "\",\"events\":[]}' | nc -w1 -uU $s && echo the socket took it; done; true"),
				"forge a live event with a program":    shell("python3 -c 'import socket,glob\nfor p in glob.glob(\"" + store + "-live/*\"):\n  socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x watch []\", p); print(\"the socket took it\")'"),
				"remove the sockets of live events":    shell("rm -rf " + store + "-live"),
				"decide with the command line":         shell("belay approvals answer " + approval + " yes"),
				"make a token with the command line":   shell("belay token create mine --role admin"),
				"replace the directory of the tokens":  shell("mv " + dir + " " + dir + ".old && mkdir " + dir),
				"remove the directory of the tokens":   shell("rm -rf " + dir),
				"write through the directory settings": shell("cd " + filepath.Dir(dir) + " && echo '" + forged + "' > tokens/forged.json"),
			}
			confined := sandbox.Find(t.Context(), nil).Kind() != sandbox.None
			if !confined { // the floor alone does not understand every command
				delete(attempts, "print the token through a variable")
			}
			for what, task := range attempts {
				id := w.newSession()
				w.turn("admin", id, task)
				said := string(w.send("admin", "GET", "/v1/sessions/"+id+"/messages", nil, nil).body)
				for name, secret := range map[string]string{"local token": local, "admin token": w.secret["admin"], "token in the environment": secretInEnvironment} {
					if strings.Contains(said, secret) {
						t.Errorf("%s: the agent has the %s", what, name)
					}
				}
				for _, word := range []string{"\\nthe sockets are visible", "the socket took it\\n"} {
					if strings.Contains(said, word) && confined {
						t.Errorf("%s: the agent reaches the sockets of live events: %s", what, said)
					}
				}
				if strings.Contains(said, `\"approvals\":`) {
					t.Errorf("%s: the API answered the agent: %s", what, said)
				}
				after, err := w.tokens.List()
				if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
					t.Fatalf("%s: the tokens are %v, %v, want %v", what, after, err, before)
				}
				var a struct{ Decided any }
				w.call("admin", "GET", "/v1/approvals/"+approval, nil, &a)
				if a.Decided != nil {
					t.Fatalf("%s: the approval is decided: %v", what, a.Decided)
				}
			}
			if _, err := os.Stat(filepath.Join(w.dir, "copied", "local.secret")); err == nil {
				t.Error("the agent has a copy of the token")
			}
			var one struct{ Hash string }
			w.call("admin", "GET", "/v1/approvals/"+approval, nil, &one)
			w.call("admin", "POST", "/v1/approvals/"+approval+"/decision", map[string]any{"hash": one.Hash, "allow": true, "answer": "yes"}, nil) // a person can
		})
	}
}
