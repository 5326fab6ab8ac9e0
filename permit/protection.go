package permit

import "github.com/belay-run/belay"

// Protection is a built-in check that applies in every mode, whatever the rules say. The
// operator can switch it off by its id. A project or a space cannot.
type Protection struct {
	ID string `json:"id"`
	// Decision is ask or deny.
	Decision belay.ToolDecision `json:"decision"`
	// Means says what the protection prevents.
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

// Protections returns all protections.
func Protections() []Protection {
	return []Protection{
		{filesOutside, belay.ToolDeny, "file tools must stay in the project and the extra roots, even if a path has links or .."},
		{shellOutside, belay.ToolAsk, "commands that read or change files outside the project need approval"},
		{systemWrite, belay.ToolDeny, "system directories must not change"},
		{selfFiles, belay.ToolDeny, "hooks, spaces, .belay, belay.yaml and .claude must not change"},
		{selfGit, belay.ToolDeny, ".git/hooks, .git/config and other files that git runs must not change"},
		{selfTasks, belay.ToolDeny, "files that other programs run automatically must not change: .envrc, .mcp.json, editors' tasks"},
		{selfCommand, belay.ToolDeny, "an agent must not use belay to approve, to trust or to change settings"},
		{netMetadata, belay.ToolDeny, "calls must not connect to link-local addresses or to the metadata services of clouds"},
		{netPrivate, belay.ToolAsk, "connections to private networks and to local names need approval"},
		{netLoopback, belay.ToolAsk, "connections to services of this machine need approval"},
		{destroyFiles, belay.ToolAsk, "removing whole directories, or the results of a search, needs approval"},
		{destroyPush, belay.ToolAsk, "rewriting or deleting branches of a remote needs approval"},
		{destroyReset, belay.ToolAsk, "discarding uncommitted changes needs approval"},
		{destroyGit, belay.ToolAsk, "rewriting history, and deleting branches, tags and stashes, needs approval"},
		{destroyData, belay.ToolAsk, "dropping databases, volumes and other stores needs approval"},
		{inputReadings, belay.ToolDeny, "the input must not be ambiguous: two programs could read it differently"},
	}
}
