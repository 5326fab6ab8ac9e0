package gemini

import (
	"time"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// HookFile is the file of a directory .gemini that can have hooks.
const HookFile = "settings.json"

// ReadHooks reads the hooks of settings files.
func ReadHooks(opts *vendorhook.Options, files ...vendorhook.File) (*vendorhook.Reading, error) {
	return vendorhook.Read(hookProfile(), opts, files...)
}

// SpeakHook makes a hook in Belay's own files run as a hook of Gemini CLI.
func SpeakHook(opts *vendorhook.Options, d *declare.Declaration) ([]vendorhook.Note, error) {
	return vendorhook.Speak(hookProfile(), opts, d)
}

func hookProfile() *vendorhook.Profile {
	return &vendorhook.Profile{
		Vendor:       dialect.GeminiCLI,
		Unit:         time.Millisecond,
		Timeout:      func(dialect.Kind) time.Duration { return time.Minute },
		AlwaysRegexp: true,
		Failures:     true,
		Fields: func(e *vendorhook.Event, in map[string]any) {
			in["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano)
			delete(in, "permission_mode")
			if e.Event.Kind == dialect.Stop {
				in["prompt"], in["prompt_response"] = "", in["last_assistant_message"]
				delete(in, "last_assistant_message")
			}
		},
		Env: func(o *vendorhook.Options, e *vendorhook.Event) []string {
			return []string{"GEMINI_PROJECT_DIR=" + o.Project, "GEMINI_CWD=" + o.Project, "GEMINI_SESSION_ID=" + e.Session, "CLAUDE_PROJECT_DIR=" + o.Project}
		},
	}
}
