package claude

import (
	"time"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/vendorhook"
)

// HookFiles are the files of a directory .claude that can have hooks.
func HookFiles() []string { return []string{"settings.json", "settings.local.json"} }

// PluginHookFile is the file of a plugin that has its hooks.
const PluginHookFile = "hooks/hooks.json"

// ReadHooks reads the hooks of settings files, or of a plugin's hooks.json.
func ReadHooks(opts *vendorhook.Options, files ...vendorhook.File) (*vendorhook.Reading, error) {
	return vendorhook.Read(hookProfile(), opts, files...)
}

// SpeakHook makes a hook in Belay's own files run as a hook of Claude Code.
func SpeakHook(opts *vendorhook.Options, d *declare.Declaration) ([]vendorhook.Note, error) {
	return vendorhook.Speak(hookProfile(), opts, d)
}

func hookProfile() *vendorhook.Profile {
	return &vendorhook.Profile{
		Vendor: dialect.ClaudeCode,
		Unit:   time.Second,
		Timeout: func(kind dialect.Kind) time.Duration {
			switch kind {
			case dialect.UserPromptSubmit:
				return 30 * time.Second
			case dialect.SessionEnd:
				return 1500 * time.Millisecond
			default:
				return 10 * time.Minute
			}
		},
		Fields: func(e *vendorhook.Event, in map[string]any) {
			if e.Event.Kind == dialect.SessionStart && in["agent_type"] == nil {
				in["agent_type"] = e.Agent
			}
		},
		Env: func(o *vendorhook.Options, e *vendorhook.Event) []string {
			env := []string{"CLAUDE_PROJECT_DIR=" + o.Project}
			if o.Root != "" {
				env = append(env, "CLAUDE_PLUGIN_ROOT="+o.Root)
			}
			if e.FilePath != "" { // older versions had these, and many hooks still use them
				env = append(env, "CLAUDE_TOOL_FILE_PATH="+e.FilePath, "CLAUDE_FILE_PATHS="+e.FilePath)
			}
			return env
		},
	}
}
