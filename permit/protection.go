package permit

import "github.com/belay-run/belay"

// Protection is built in and always on, whatever the mode and the rules. The
// operator can relax one by its id; a project or a space cannot.
type Protection struct {
	ID string `json:"id"`
	// Decision is what it says: ask or deny.
	Decision belay.ToolDecision `json:"decision"`
	// Means says what it holds.
	Means string `json:"means"`
}

// The ids of the protections.
const (
	filesOutside  = "files.outside"
	shellOutside  = "shell.outside"
	systemWrite   = "system.write"
	selfFiles     = "self.files"
	selfGit       = "self.git"
	selfTasks     = "self.tasks"
	selfCommand   = "self.command"
	netMetadata   = "net.metadata"
	netPrivate    = "net.private"
	netLoopback   = "net.loopback"
	destroyFiles  = "destructive.files"
	destroyPush   = "destructive.push"
	destroyReset  = "destructive.reset"
	destroyGit    = "destructive.history"
	destroyData   = "destructive.data"
	inputReadings = "input.ambiguous"
)

// Protections are all protections.
func Protections() []Protection {
	return []Protection{
		{filesOutside, belay.ToolDeny, "file tools reach the project and the extra roots only, whatever links and .. say"},
		{shellOutside, belay.ToolAsk, "commands that read or change files outside the project are asked about"},
		{systemWrite, belay.ToolDeny, "system directories are not changed"},
		{selfFiles, belay.ToolDeny, "hooks, spaces, .belay, belay.yaml and .claude are not changed"},
		{selfGit, belay.ToolDeny, ".git/hooks and .git/config are not changed, nor what git runs by itself"},
		{selfTasks, belay.ToolDeny, "files that other programs run by themselves are not changed: .envrc, .mcp.json, editors' tasks"},
		{selfCommand, belay.ToolDeny, "belay is not used to approve, to trust or to reconfigure itself"},
		{netMetadata, belay.ToolDeny, "link-local addresses and the metadata services of clouds are not reached"},
		{netPrivate, belay.ToolAsk, "private networks and names that look local are asked about"},
		{netLoopback, belay.ToolAsk, "services of this machine are asked about"},
		{destroyFiles, belay.ToolAsk, "removing whole directories, or files by search, is asked about"},
		{destroyPush, belay.ToolAsk, "rewriting or deleting branches of a remote is asked about"},
		{destroyReset, belay.ToolAsk, "throwing away changes that are not committed is asked about"},
		{destroyGit, belay.ToolAsk, "rewriting history, and deleting branches, tags and stashes, is asked about"},
		{destroyData, belay.ToolAsk, "dropping databases, volumes and other stores is asked about"},
		{inputReadings, belay.ToolDeny, "an input that two readers could read differently is not judged"},
	}
}
