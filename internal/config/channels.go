package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// These are the kinds of channels.
const (
	ChannelSlack    = "slack"
	ChannelTelegram = "telegram"
	ChannelWebhook  = "webhook"
)

// ChannelKinds returns all kinds of channels.
func ChannelKinds() []string { return []string{ChannelSlack, ChannelTelegram, ChannelWebhook} }

// Channel is a place where people get approvals and decide.
type Channel struct {
	Kind string `json:"kind"`
	// To is the id of the channel in Slack, or of the chat in Telegram.
	To string `json:"to"`
	// Approvers are the ids of the people who may decide.
	Approvers []string `json:"approvers"`
	// URL is the address of a webhook, or another address for the API of Slack or Telegram.
	URL string `json:"url"`
	// Token is the bot token of Slack or Telegram, AppToken the app token of Slack, and Secret
	// signs the calls of a webhook.
	Token    Secret `json:"token"`
	AppToken Secret `json:"app_token"`
	Secret   Secret `json:"secret"`
}

// Secret says where a secret is. It never is in the settings themselves.
type Secret struct {
	// Env is the name of an environment variable. File is the absolute path of a file.
	Env  string `json:"env"`
	File string `json:"file"`
}

// Read returns the secret. what names it in errors.
func (l *Loaded) Read(what string, s Secret) (string, error) {
	if s.Env != "" {
		if value := strings.TrimSpace(l.Environment(s.Env)); value != "" {
			return value, nil
		}
		return "", fmt.Errorf("%s: the variable %s is not set", what, s.Env)
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if value := strings.TrimSpace(string(data)); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("%s: the file %s is empty", what, s.File)
}

// ChannelNames returns the names of the channels, in order.
func (l *Loaded) ChannelNames() []string { return slices.Sorted(maps.Keys(l.Channels)) }

// checkServeURL checks the address of the server. It may be empty.
func checkServeURL(address string) error {
	if address == "" {
		return nil
	}
	return checkURL(address)
}

// checkTraceURL returns an error unless an address is empty or can show a trace.
func checkTraceURL(address string) error {
	if address == "" {
		return nil
	}
	if !strings.Contains(address, "{trace}") {
		return fmt.Errorf("%q has no {trace}, which stands for the id of the trace: use an address such as https://jaeger.example/trace/{trace}", address)
	}
	return checkURL(strings.ReplaceAll(address, "{trace}", "0"))
}

// channelName matches the names of channels, which are also names of files.
var channelName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// channels reads the channels of a file. It records mistakes with their line.
func (r *reading) channels(node ast.Node) map[string]Channel {
	object, ok := node.(ast.MapNode)
	if !ok {
		r.refusef(node, "channels: expected names with settings: {team: {kind: slack, to: C0123, token_env: SLACK_BOT_TOKEN, app_token_env: SLACK_APP_TOKEN, approvers: [U0123]}}")
		return nil
	}
	all := make(map[string]Channel)
	for pairs := object.MapRange(); pairs.Next(); {
		name := keyName(pairs.Key())
		if !channelName.MatchString(name) {
			r.refusef(pairs.Key(), "channels: %q is not a valid name: use at most 32 small letters, digits, dashes and underscores", name)
			continue
		}
		all[name] = r.channel("channels."+name, pairs.KeyValue())
	}
	return all
}

// errSecretItself rejects a secret in a settings file, because people show and share such
// files. It does not repeat the secret.
var errSecretItself = errors.New("a secret must not be in settings: put it into a variable or a file, and name that with token_env or token_file, app_token_env or app_token_file, secret_env or secret_file")

// channelKeys are the keys that each kind of channel needs, and those that it may have.
var channelKeys = map[string]struct{ needs, may []string }{
	ChannelSlack:    {[]string{"to", "token", "app_token", "approvers"}, []string{"url"}},
	ChannelTelegram: {[]string{"to", "token", "approvers"}, []string{"url"}},
	ChannelWebhook:  {[]string{"url", "secret"}, nil},
}

// channelIDs are the ids that a service sends: an answer is compared with them. A name that people read there would match nobody,
// or later somebody else who has taken the name.
var channelIDs = map[string]struct {
	to, approver         *lazyregexp.Regexp
	findTo, findApprover string
}{
	ChannelSlack: {
		lazyregexp.New(`^[CDGUW][A-Z0-9]+$`), lazyregexp.New(`^[UW][A-Z0-9]+$`),
		"such as C0123456789, at the end of the details of the channel", "such as U0123456789, in the menu of the person's profile",
	},
	ChannelTelegram: {
		lazyregexp.New(`^-?\d+$`), lazyregexp.New(`^\d+$`),
		"such as \"-1001234567890\" for a group: getUpdates of the bot's API shows it after a message in the chat", "such as \"123456789\": when the person presses a button, the refusal shows the id",
	},
}

// checkIDs records the names that are written where ids belong.
func (r *reading) checkIDs(what string, pair *ast.MappingValueNode, c *Channel) {
	ids, ok := channelIDs[c.Kind]
	if !ok {
		return
	}
	if !ids.to.MatchString(c.To) {
		r.refusef(pair.Key, "%s: to: %q is not an id of %s: write the id, %s", what, c.To, c.Kind, ids.findTo)
	}
	if len(c.Approvers) == 0 {
		r.refusef(pair.Key, "%s: approvers: the list is empty, so nobody could decide: write the ids of people, %s", what, ids.findApprover)
	}
	for _, id := range c.Approvers {
		if !ids.approver.MatchString(id) {
			r.refusef(pair.Key, "%s: approvers: %q is not the id of a person in %s: write the id, %s", what, id, c.Kind, ids.findApprover)
		}
	}
}

func (r *reading) channel(what string, pair *ast.MappingValueNode) Channel {
	var c Channel
	given := make(map[string]bool)
	keys := map[string]func(ast.Node) error{
		"kind":      checked(&c.Kind, func(kind string) error { return oneOf(kind, ChannelKinds()) }),
		"to":        text(&c.To),
		"approvers": texts(&c.Approvers),
		"url":       checked(&c.URL, checkURL),
	}
	for name, into := range map[string]*Secret{"token": &c.Token, "app_token": &c.AppToken, "secret": &c.Secret} {
		keys[name+"_env"] = checked(&into.Env, func(word string) error {
			if !variableName.MatchString(word) {
				return fmt.Errorf("the value is not the name of a variable in capitals: put the secret into a variable and name it, or into a file and name that with %s_file", name)
			}
			return nil
		})
		keys[name+"_file"] = func(node ast.Node) error {
			err := decode(node, &into.File)
			into.File = absolute(atHome(into.File), filepath.Dir(r.file))
			return err
		}
	}
	for key, read := range keys {
		keys[key] = func(node ast.Node) error {
			given[strings.TrimSuffix(strings.TrimSuffix(key, "_env"), "_file")] = true
			return read(node)
		}
	}
	if object, ok := pair.Value.(ast.MapNode); ok { // add only keys that are in the file, so that hints never suggest such a key
		for written := object.MapRange(); written.Next(); {
			if key := written.Key().String(); isKeyItself(key) || key == "app_token" || key == "bot_token" {
				keys[key] = func(ast.Node) error { return errSecretItself }
			}
		}
	}
	before := len(r.problems)
	r.members(what, pair.Value, keys)
	if len(r.problems) > before {
		return c
	}
	if c.Kind == "" {
		r.refusef(pair.Key, "%s: kind is missing: use %s", what, strings.Join(ChannelKinds(), ", "))
		return c
	}
	fits := channelKeys[c.Kind]
	for _, key := range fits.needs {
		if !given[key] {
			r.refusef(pair.Key, "%s: %s is missing: a channel of kind %s needs it", what, spelled(key), c.Kind)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if key != "kind" && !slices.Contains(fits.needs, key) && !slices.Contains(fits.may, key) {
			r.refusef(pair.Key, "%s: %s: a channel of kind %s has no such setting", what, spelled(key), c.Kind)
		}
	}
	if len(r.problems) == before {
		r.checkIDs(what, pair, &c)
	}
	for _, s := range []Secret{c.Token, c.AppToken, c.Secret} {
		if s.Env != "" && s.File != "" {
			r.refusef(pair.Key, "%s: a secret has both a variable and a file: name one of them", what)
		}
	}
	return c
}

// spelled returns a key as it is written in the file.
func spelled(key string) string {
	if key == "token" || key == "app_token" || key == "secret" {
		return key + "_env or " + key + "_file"
	}
	return key
}

// secrets returns where the secrets of the channel are.
func (c *Channel) secrets() []Secret {
	return slices.DeleteFunc([]Secret{c.Token, c.AppToken, c.Secret}, func(s Secret) bool { return s == Secret{} })
}

// ChannelSecrets returns the secrets of channels that can be read now.
func (l *Loaded) ChannelSecrets() []string {
	var values []string
	for _, name := range l.ChannelNames() {
		c := l.Channels[name]
		for _, s := range c.secrets() {
			if value, err := l.Read(name, s); err == nil { // ignore errors: "belay serve" reports them
				values = append(values, value)
			}
		}
	}
	return values
}

// secretVariables returns the names of the variables with the secrets of channels.
func (l *Loaded) secretVariables() []string {
	var names []string
	for _, name := range l.ChannelNames() {
		c := l.Channels[name]
		for _, s := range c.secrets() {
			if s.Env != "" {
				names = append(names, s.Env)
			}
		}
	}
	return names
}
