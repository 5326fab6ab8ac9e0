package cli

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/channel"
	"github.com/belay-run/belay/channel/slack"
	"github.com/belay-run/belay/channel/telegram"
	"github.com/belay-run/belay/channel/webhook"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/near"
	"github.com/belay-run/belay/internal/visible"
	"github.com/spf13/cobra"
)

// channelDir returns the directory where channels remember what they have sent.
func channelDir(settings *config.Loaded) string { return filepath.Join(settings.Home(), "channels") }

// openChannel makes the channel with a name. It reads the secrets, and does not connect.
func openChannel(settings *config.Loaded, name string) (channel.Channel, error) { //nolint:ireturn // the settings say which one it is
	c, ok := settings.Channels[name]
	if !ok {
		return nil, usage("there is no channel %q%s: `belay channels list` lists them", name, near.Hint(name, settings.ChannelNames()))
	}
	what := settings.From("channels").String() + ": channels." + name
	read := func(key string, s config.Secret) (string, error) {
		value, err := settings.Read(what+"."+key, s)
		if err != nil {
			return "", usage("%w", err)
		}
		return value, nil
	}
	var (
		made channel.Channel
		err  error
	)
	switch c.Kind {
	case config.ChannelSlack:
		var o slack.Options
		o.To, o.URL = c.To, c.URL
		if o.BotToken, err = read("token", c.Token); err == nil {
			o.AppToken, err = read("app_token", c.AppToken)
		}
		if err == nil {
			made, err = slack.New(&o)
		}
	case config.ChannelTelegram:
		var token string
		if token, err = read("token", c.Token); err == nil {
			made, err = telegram.New(&telegram.Options{To: c.To, URL: c.URL, Token: token})
		}
	default:
		var secret string
		if secret, err = read("secret", c.Secret); err == nil {
			made, err = webhook.New(&webhook.Options{URL: c.URL, Secret: secret})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	return made, nil
}

// consoleLink returns a function that returns the address of an approval in the console, or nil if
// the settings have no address.
func consoleLink(server string) func(approval string) string {
	if server == "" {
		return nil
	}
	return func(approval string) string {
		return strings.TrimRight(server, "/") + "/approvals/" + url.PathEscape(approval)
	}
}

// runChannels runs the channels of the settings until ctx ends. It returns an error if a channel
// has wrong settings. Call wait after ctx has ended.
func (a *app) runChannels(ctx context.Context, settings *config.Loaded, h *host.Host) (wait func(), err error) {
	names := settings.ChannelNames()
	if len(names) == 0 {
		return func() {}, nil
	}
	store, ok := h.Store().(channel.Store)
	if !ok {
		return nil, fmt.Errorf("a store of type %T cannot list approvals: channels need store/sqlite or store/postgres", h.Store())
	}
	var runners []*channel.Runner
	var wakes []chan struct{}
	for _, name := range names {
		made, err := openChannel(settings, name)
		if err != nil {
			return nil, err
		}
		wake := make(chan struct{}, 1)
		opts := &channel.Options{Dir: channelDir(settings), Approvers: settings.Channels[name].Approvers, Link: consoleLink(settings.Serve.URL), Wake: wake, Logger: a.serverLogger()}
		runner, err := channel.New(name, made, store, opts)
		if err != nil {
			return nil, err
		}
		runners, wakes = append(runners, runner), append(wakes, wake)
	}
	var group sync.WaitGroup
	for _, runner := range runners {
		group.Go(func() { runner.Run(ctx) }) // ends with ctx
	}
	group.Go(func() { // ends with ctx
		for e := range h.Watch(ctx, nil) {
			if e.Kind != belay.EventApprovalRequested && e.Kind != belay.EventApprovalDecided && e.Kind != belay.EventTurnEnd {
				continue
			}
			for _, wake := range wakes {
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}
	})
	return group.Wait, nil
}

func (a *app) channelsCommand() *cobra.Command {
	channels := parent(&cobra.Command{
		Use:   "channels",
		Short: "List and test the channels that ask for approvals",
		Long: `A channel sends approvals and questions to people in Slack, in Telegram or at a webhook, and takes their decisions. Channels are
set in the user's belay.yaml under "channels". "belay serve" runs them. docs/channels.md shows how to set them up.`,
		Example: `  belay channels list
  belay channels test team`,
	})
	channels.AddCommand(a.listChannels(), a.testChannel())
	return channels
}

// channelLine is one channel in the output of "belay channels list".
type channelLine struct {
	Name      string             `json:"name"`
	Kind      string             `json:"kind"`
	Approvers []string           `json:"approvers,omitempty"`
	Waiting   int                `json:"waiting"`
	Failing   []channel.Delivery `json:"failing,omitempty"`
	Refused   []channel.Refusal  `json:"refused,omitempty"`
	Error     string             `json:"error,omitempty"`
}

// channelState returns the state of a channel.
func channelState(settings *config.Loaded, name string) (channelLine, error) {
	c := settings.Channels[name]
	line := channelLine{Name: name, Kind: c.Kind, Approvers: c.Approvers}
	status, err := channel.ReadStatus(channelDir(settings), name)
	if err != nil {
		return line, err
	}
	line.Refused, line.Error = status.Refused, status.Error
	for _, d := range status.Deliveries {
		if !d.Closed && d.Place != "" && d.Outcome == "" {
			line.Waiting++
		}
		if !d.Closed && d.Error != "" {
			line.Failing = append(line.Failing, *d)
		}
	}
	return line, nil
}

// problems describes in words what does not work.
func (c *channelLine) problems() []string {
	var all []string
	if c.Error != "" {
		all = append(all, "answers cannot be received: "+c.Error)
	}
	for _, d := range c.Failing {
		next := d.Next.Local().Format(time.TimeOnly)
		all = append(all, fmt.Sprintf("approval %s: %s (%s, the next attempt is at %s)", d.Approval, d.Error, visible.Counted(d.Attempts, "failed attempt"), next))
	}
	return all
}

func (a *app) listChannels() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the channels, and what they could not send",
		Long:    "Lists the channels of the settings with the approvals that wait there, messages that could not be sent, and people who tried to\ndecide and may not.",
		Example: "  belay channels list",
		Args:    arguments(0, 0, "channels list takes no arguments"),
		RunE: func(*cobra.Command, []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			out := a.newList(asJSON, "CHANNEL", "KIND", "APPROVERS", "WAITING", "REFUSED", "STATE")
			var notes []string
			for _, name := range settings.ChannelNames() {
				line, err := channelState(settings, name)
				if err != nil {
					return err
				}
				state, wrong := a.onOut.green("ok"), line.problems()
				if len(wrong) > 0 {
					state = a.onOut.red("failing")
				}
				for _, w := range wrong {
					notes = append(notes, name+": "+w)
				}
				if n := len(line.Refused); n > 0 {
					last := line.Refused[n-1]
					notes = append(notes, fmt.Sprintf("%s: %s tried to decide %s and is not an approver", name, last.User, last.Approval))
				}
				out.add(line, name, line.Kind, oneLine(strings.Join(line.Approvers, ",")), fmt.Sprint(line.Waiting), fmt.Sprint(len(line.Refused)), state)
			}
			err = out.end("there are no channels: see docs/channels.md")
			if !asJSON {
				for _, note := range notes {
					a.remarkf("%s", a.onErr.yellow(oneLine(note)))
				}
			}
			return err
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON object per line")
	return cmd
}

func (a *app) testChannel() *cobra.Command {
	return &cobra.Command{
		Use:     "test CHANNEL",
		Short:   "Send a test message to a channel",
		Long:    "Sends a message that asks nothing to a channel, and says what happened. It checks the secrets, and for Slack also whether answers\ncan be received.",
		Example: "  belay channels test team",
		Args:    arguments(1, 1, "name the CHANNEL: `belay channels list` lists them"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if settings, err := a.settings(); err == nil {
				names = settings.ChannelNames()
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := a.settings()
			if err != nil {
				return err
			}
			made, err := openChannel(settings, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			if err := made.Test(ctx, "This is a test of Belay. Approvals will appear here."); err != nil {
				return &exitError{code: exitFailed, err: fmt.Errorf("the message was not sent: %w", err)}
			}
			if _, err := fmt.Fprintf(a.out, "sent to %s (%s): look there\n", args[0], made.Kind()); err != nil {
				return fmt.Errorf("print: %w", err)
			}
			if c := settings.Channels[args[0]]; len(c.Approvers) > 0 {
				a.remarkf("%s", a.onErr.dim("these people may decide: "+oneLine(strings.Join(c.Approvers, ", "))))
			}
			return nil
		},
	}
}

// channelsFinding reports whether the channels work. It sends nothing.
func channelsFinding(settings *config.Loaded) finding {
	names := settings.ChannelNames()
	f := finding{Name: "channels", Status: found, Detail: strings.Join(names, ", ")}
	var wrong []string
	for _, name := range names {
		_, err := openChannel(settings, name)
		var line channelLine
		if err == nil {
			line, err = channelState(settings, name)
		}
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		for _, w := range line.problems() {
			wrong = append(wrong, name+": "+w)
		}
	}
	if len(wrong) > 0 {
		f.Status, f.Detail, f.Remedy = broken, strings.Join(wrong, "; "), "`belay channels test NAME` sends a test message"
	}
	return f
}
