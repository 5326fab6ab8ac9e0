package convert

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// codex reads a setup of Codex.
func (im *importer) codex(ctx context.Context) {
	im.hooks()
	im.at(".codex", "hooks.json")
	im.at(".codex", "hooks")
	if path, text, ok := im.read(".codex", "config.toml"); ok {
		im.codexConfig(path, text)
	}
	im.commands(ctx, ".codex/prompts")
	im.skills(".codex/skills")
	if path, text, ok := im.read(".codex", "AGENTS.md"); ok {
		im.instructions([]instruction{{path, text}}, false)
	}
	im.rest(".codex", "auth.json", "history.jsonl", "sessions", "log", "version.json", "archived_sessions", "tmp", "cache", "models_cache.json", "internal_storage.json", "packages")
}

// codexConfig reads config.toml.
func (im *importer) codexConfig(path, text string) {
	var top map[string]any
	if err := toml.Unmarshal([]byte(text), &top); err != nil {
		im.notef(path, "not translated: it is not valid TOML: %v", err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		servers, ok := top[key].(map[string]any)
		if key != "mcp_servers" || !ok {
			im.plan.Read++
			im.notef(path, "%s: not translated%s", key, codexInstead[key])
			continue
		}
		given := make(map[string]json.RawMessage, len(servers))
		for name, value := range servers {
			if table, ok := value.(map[string]any); ok {
				codexServer(table)
			}
			data, err := json.Marshal(value)
			if err != nil {
				im.notef(path, "the MCP server %s is not translated: %v", name, err)
				continue
			}
			given[name] = data
		}
		im.addServers(path, given)
	}
}

// codexInstead says where Belay has the setting of a key.
var codexInstead = map[string]string{
	"model": ": set model in belay.yaml", "approval_policy": ": see mode in belay.yaml", "sandbox_mode": ": see mode and sandbox in belay.yaml",
	"model_provider": ": see model and providers in belay.yaml", "model_providers": ": see providers in belay.yaml", "profiles": ": Belay has no profiles",
	"notify": ": write a hook at turn.post_turn", "features": "", "projects": ": `belay trust` decides about projects", "hooks": ": write them into .codex/hooks.json, which Belay reads",
}

// codexServer replaces keys that name variables by values with these variables.
func codexServer(table map[string]any) {
	headers := func() map[string]any {
		h, ok := table["http_headers"].(map[string]any)
		if !ok {
			h = map[string]any{}
			table["http_headers"] = h
		}
		return h
	}
	if name, ok := table["bearer_token_env_var"].(string); ok {
		delete(table, "bearer_token_env_var")
		headers()["Authorization"] = "Bearer ${" + name + "}"
	}
	if named, ok := table["env_http_headers"].(map[string]any); ok {
		delete(table, "env_http_headers")
		for header, name := range named {
			if text, ok := name.(string); ok {
				headers()[header] = "${" + text + "}"
			}
		}
	}
	if names, ok := table["env_vars"].([]any); ok {
		delete(table, "env_vars")
		env, ok := table["env"].(map[string]any)
		if !ok {
			env = map[string]any{}
			table["env"] = env
		}
		for _, name := range names {
			if text, ok := name.(string); ok {
				env[text] = "${" + text + "}"
			}
		}
	}
}
