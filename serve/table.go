package serve

import (
	"net/http"

	"github.com/belay-run/belay/serve/api"
)

// operations returns the table of all operations.
func operations() []operation {
	return []operation{
		action(operation{id: "createSession", method: "POST", path: "/v1/sessions", tag: "sessions", role: RoleRun, status: http.StatusCreated, summary: "Create a session"}, createSession),
		action(operation{id: "listSessions", method: "GET", path: "/v1/sessions", tag: "sessions", role: RoleRead, summary: "List sessions, the last changed first"}, listSessions),
		action(operation{id: "readSession", method: "GET", path: "/v1/sessions/{session}", tag: "sessions", role: RoleRead, summary: "Read a session"}, readSession),
		action(operation{id: "updateSession", method: "PATCH", path: "/v1/sessions/{session}", tag: "sessions", role: RoleRun, summary: "Change the title and the labels of a session"}, updateSession),
		action(operation{id: "deleteSession", method: "DELETE", path: "/v1/sessions/{session}", tag: "sessions", role: RoleAdmin, status: http.StatusNoContent, summary: "Delete a session with everything it left"}, deleteSession),
		action(operation{id: "forkSession", method: "POST", path: "/v1/sessions/{session}/fork", tag: "sessions", role: RoleRun, status: http.StatusCreated, summary: "Make a new session from the beginning of another"}, forkSession),
		action(operation{id: "listMessages", method: "GET", path: "/v1/sessions/{session}/messages", tag: "sessions", role: RoleRead, summary: "List the messages of a session, oldest first or newest first"}, listMessages),
		stream(operation{id: "readMedia", method: "GET", path: "/v1/sessions/{session}/messages/{message}/media/{media}", tag: "sessions", role: RoleRead, media: true, summary: "Read an image or a file of a message"}, nil, readMedia),
		stream(operation{id: "sessionEvents", method: "GET", path: "/v1/sessions/{session}/events", tag: "events", role: RoleRead, summary: "Follow the events of a session"}, sessionEventKinds(), sessionEvents),
		stream(operation{id: "allEvents", method: "GET", path: "/v1/events", tag: "events", role: RoleRead, summary: "Follow approvals and turns of all sessions that the token may see"}, feedEventKinds, allEvents),

		action(operation{id: "startTurn", method: "POST", path: "/v1/sessions/{session}/turns", tag: "turns", role: RoleRun, files: true, status: http.StatusAccepted, summary: "Start a turn: send a message to the agent"}, startTurn),
		action(operation{id: "listQueue", method: "GET", path: "/v1/sessions/{session}/queue", tag: "turns", role: RoleRead, summary: "List the turns of a session that have not begun"}, listQueue),
		action(operation{id: "withdrawTurn", method: "DELETE", path: "/v1/sessions/{session}/queue/{turn}", tag: "turns", role: RoleRun, status: http.StatusNoContent, summary: "Remove a turn that has not begun from the queue"}, withdrawTurn),
		action(operation{id: "abortTurn", method: "POST", path: "/v1/sessions/{session}/abort", tag: "turns", role: RoleRun, status: http.StatusAccepted, summary: "Abort the open turn of a session"}, abortTurn),
		action(operation{id: "resumeTurn", method: "POST", path: "/v1/sessions/{session}/resume", tag: "turns", role: RoleRun, status: http.StatusAccepted, summary: "Resume a turn that is parked or was interrupted"}, resumeTurn),
		action(operation{id: "listTurns", method: "GET", path: "/v1/sessions/{session}/turns", tag: "turns", role: RoleRead, summary: "List the turns of a session, the newest first"}, listTurns),
		action(operation{id: "readTimeline", method: "GET", path: "/v1/sessions/{session}/turns/{turn}/timeline", tag: "turns", role: RoleRead, summary: "Show everything that happened in a turn on one axis of time: model calls, tool calls, hook runs, approvals, subagents"}, readTimeline),

		writing(operation{id: "chatCompletion", method: "POST", path: pathChat, tag: tagOpenAI, role: RoleRun, summary: "Run a turn, with the Chat Completions API of OpenAI. With stream=true the response is server-sent events"}, chatCompletion),
		writing(operation{id: "createResponse", method: "POST", path: pathResponses, tag: tagOpenAI, role: RoleRun, summary: "Run a turn, with the Responses API of OpenAI. With stream=true the response is server-sent events"}, createResponse),
		action(operation{id: "readResponse", method: "GET", path: pathResponses + "/{response}", tag: tagOpenAI, role: RoleRead, summary: "Read a response of the Responses API, for example after its approval was decided"}, readResponse),

		action(operation{id: "listApprovals", method: "GET", path: "/v1/approvals", tag: "approvals", role: RoleRead, summary: "List approvals and questions, oldest first"}, inbox),
		action(operation{id: "countApprovals", method: "GET", path: "/v1/approval-count", tag: "approvals", role: RoleRead, summary: "Count the approvals and questions that wait"}, countApprovals),
		action(operation{id: "readApproval", method: "GET", path: "/v1/approvals/{approval}", tag: "approvals", role: RoleRead, summary: "Read an approval, with its call and what the call would do"}, describedApproval),
		action(operation{id: "decideApproval", method: "POST", path: "/v1/approvals/{approval}/decision", tag: "approvals", role: RoleApprove, summary: "Approve or deny a call, or answer a question"}, decideApproval),
		action(operation{id: "listGrants", method: "GET", path: "/v1/grants", tag: "approvals", role: RoleRead, summary: "List the approvals that cover more than one call"}, listGrants),
		action(operation{id: "revokeGrant", method: "DELETE", path: "/v1/sessions/{session}/grants/{grant}", tag: "approvals", role: RoleApprove, status: http.StatusNoContent, summary: "Take back an approval that covers more than one call"}, revokeGrant),

		action(operation{id: "listRuns", method: "GET", path: "/v1/runs", tag: "runs", role: RoleRead, summary: "List the records of hook runs, the newest first"}, listRuns),
		stream(operation{id: "runEvents", method: "GET", path: "/v1/runs/events", tag: "runs", role: RoleRead, summary: "Follow the records of hook runs"}, []string{api.EventPosition, "run"}, runEvents),
		action(operation{id: "readRun", method: "GET", path: "/v1/sessions/{session}/runs/{run}", tag: "runs", role: RoleRead, summary: "Read the record of a hook run"}, readRun),
		action(operation{id: "explainRun", method: "GET", path: "/v1/sessions/{session}/runs/{run}/explanation", tag: "runs", role: RoleRead, summary: "Explain a hook run: which hooks were asked, what they did, what won"}, explainRun),

		action(operation{id: "listHooks", method: "GET", path: "/v1/hooks", tag: "hooks", role: RoleRead, unlimited: true, summary: "List the hooks of the project, and which of them run"}, listHooks),
		action(operation{id: "planHooks", method: "GET", path: "/v1/hooks/plan", tag: "hooks", role: RoleRead, unlimited: true, summary: "Show the order in which hooks run, and why"}, planHooks),
		action(operation{id: "hookGraph", method: "GET", path: "/v1/hooks/graph", tag: "hooks", role: RoleRead, unlimited: true, summary: "Show the order of the hooks as a graph"}, hookGraph),
		action(operation{id: "hookTrust", method: "GET", path: "/v1/hooks/trust", tag: "hooks", role: RoleRead, unlimited: true, summary: "List the trusted directories, and what has changed in them"}, hookTrust),
		action(operation{id: "hookStats", method: "GET", path: "/v1/hooks/stats", tag: "hooks", role: RoleRead, unlimited: true, summary: "Count runs, failures and denials of each hook, and how long it takes"}, hookStats),

		action(operation{id: "readWorkers", method: "GET", path: "/v1/workers", tag: "workers", role: RoleRead, unlimited: true, summary: "Show the processes of the store, and how many turns and jobs wait"}, readWorkers),
		action(operation{id: "listJobs", method: "GET", path: "/v1/jobs", tag: "workers", role: RoleRead, unlimited: true, summary: "List background jobs, the newest first"}, listJobs),
		action(operation{id: "retryJob", method: "POST", path: "/v1/jobs/{job}/retry", tag: "workers", role: RoleAdmin, unlimited: true, summary: "Run a job now: one that waits, has failed or was cancelled"}, retryJob),
		action(operation{id: "cancelJob", method: "POST", path: "/v1/jobs/{job}/cancel", tag: "workers", role: RoleAdmin, unlimited: true, summary: "Cancel a job that waits"}, cancelJob),
		action(operation{id: "listSkills", method: "GET", path: "/v1/skills", tag: "project", role: RoleRead, summary: "List the skills"}, listSkills),
		action(operation{id: "listAgents", method: "GET", path: "/v1/agents", tag: "project", role: RoleRead, summary: "List the declared agents"}, listAgents),
		action(operation{id: "listModels", method: "GET", path: "/v1/models", tag: "project", role: RoleRead, summary: "List providers and models, and the agents as OpenAI lists models"}, listModels),
		action(operation{id: "readUsage", method: "GET", path: "/v1/usage", tag: "usage", role: RoleRead, summary: "Add up tokens and cost of the sessions"}, readUsage),
		action(operation{id: "askAudit", method: "GET", path: "/v1/audit/{question}", tag: "audit", role: RoleRead, summary: "Answer a question about all sessions: what was denied, which hooks are slow or fail, who approved, what was used"}, askAudit),
		action(operation{id: "backtest", method: "POST", path: "/v1/backtest", tag: "audit", role: RoleRun, unlimited: true, summary: "Try the hooks and rules, as their files are now, on recorded sessions, and list what would differ"}, runBacktest),
		action(operation{id: "readSelf", method: "GET", path: "/v1/self", tag: "usage", role: RoleRead, summary: "Show the name, the roles and the labels of the token"}, readSelf),
	}
}
