package codex

import (
	"time"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// HookFile is the file of a directory .codex that has hooks.
const HookFile = "hooks.json"

// ReadHooks reads the hooks of hooks.json files.
func ReadHooks(opts *vendorhook.Options, files ...vendorhook.File) (*vendorhook.Reading, error) {
	return vendorhook.Read(hookProfile(), opts, files...)
}

// SpeakHook makes a hook in Belay's own files run as a hook of Codex.
func SpeakHook(opts *vendorhook.Options, d *declare.Declaration) ([]vendorhook.Note, error) {
	return vendorhook.Speak(hookProfile(), opts, d)
}

func hookProfile() *vendorhook.Profile {
	return &vendorhook.Profile{
		Vendor: dialect.Codex,
		Unit:   time.Second,
		Timeout: func(kind dialect.Kind) time.Duration {
			if kind == dialect.SessionEnd {
				return time.Second
			}
			return 10 * time.Minute
		},
		Failures: true,
		Fields: func(e *vendorhook.Event, in map[string]any) {
			in["turn_id"], in["model"] = e.Turn, ""
			for _, key := range []string{"transcript_path", "agent_transcript_path"} {
				if in[key] == "" {
					in[key] = nil
				}
			}
		},
		Env: func(o *vendorhook.Options, _ *vendorhook.Event) []string {
			if o.Root != "" {
				return []string{"PLUGIN_ROOT=" + o.Root, "CLAUDE_PLUGIN_ROOT=" + o.Root}
			}
			return nil
		},
	}
}
