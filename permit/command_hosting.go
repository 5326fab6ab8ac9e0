package permit

import "strings"

// hostingCommands are the command-line tools of code hosting services, such as GitHub,
// and of cloud platforms.
func hostingCommands(t table) {
	t.add("gh glab hub tea", hostingCommand)
	t.add("heroku fly flyctl vercel netlify wrangler firebase railway supabase render doctl linode-cli hcloud scw ibmcloud oci cf eb amplify sls serverless cdk sam "+
		"sentry-cli datadog-ci stripe twilio slack op vault consul nomad", platformCommand)
}

// hostingCommand judges gh and similar tools. Their words are a subject such as pr, a
// verb and arguments.
func hostingCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* R= repo= H= hostname= X= method= f= raw-field= F= field= input=< q= jq= t= template= L= limit= S= search= s= state= a= assignee= l= label= b= body= body-file=< title= B= base= "+
		"p= path= D=> dir=> O=> output=> json= editor! e! web! w! browse! host= notes-file=< pattern= A= author= c= m= milestone= j= job= exit-status")
	subject, verb := word(o.rest, 0), word(o.rest, 1)
	switch {
	case subject == "":
		if len(o.rest) > 0 {
			c.unknown("cannot determine what it does")
		}
	case subject == "api":
		method, given := o.value("X", "method")
		if given && !oneOf(strings.ToUpper(method.text), "GET HEAD") || !given && o.has("f", "raw-field", "F", "field", "input") {
			c.zone(ZoneExternal, "changes something on the code hosting service")
			if strings.EqualFold(method.text, "DELETE") {
				c.protect(destroyData, "deletes something on the code hosting service")
			}
			return
		}
		c.zone(ZoneNetwork, "queries the code hosting service")
		if strings.Contains(verb, "://") {
			c.fetch(o.rest[1])
		}
		if verb == "graphql" {
			c.zone(ZoneExternal, "a GraphQL query may change something on the code hosting service")
		}
	case subject == "auth" && verb == "status", subject == "status", subject == "search":
		c.zone(ZoneNetwork, "queries the code hosting service")
	case oneOf(subject, "auth config alias extension extensions ext codespace cs browse ssh-key gpg-key completion preview copilot secret variable"):
		if oneOf(verb, "list ls view get") && !oneOf(subject, "auth config") {
			c.zone(ZoneNetwork, "queries the code hosting service")
			return
		}
		c.zone(ZoneMachine, "uses or changes the user's credentials for the code hosting service")
	case oneOf(subject, "pr mr issue repo project release run workflow gist label cache ruleset org ci pipeline job milestone attestation snippet incident"):
		c.hostingVerb(subject, verb)
	default:
		c.unknown("Belay does not know what this command does")
	}
}

func (c *invoked) hostingVerb(subject, verb string) {
	switch {
	case oneOf(verb, "view list ls status diff checks watch show get trace check verify"):
		c.zone(ZoneNetwork, "queries the code hosting service")
	case oneOf(verb, "clone checkout co download"):
		c.zone(ZoneNetwork, "fetches from the code hosting service")
		if verb == "download" {
			c.unpacks(literal("."))
		}
	case oneOf(verb, "set-default rename") && subject == "repo":
		c.zone(ZoneExternal, "changes something on the code hosting service")
		c.protect(selfGit, "changes .git/config")
	default:
		c.zone(ZoneExternal, "changes something on the code hosting service")
		if oneOf(verb, "delete delete-asset archive") {
			c.protect(destroyData, "deletes something on the code hosting service")
		}
	}
}

// These verbs are common to the tools of many platforms.
const (
	askingVerbs     = "list ls show status info logs log get describe view version whoami help diff plan preview validate check inspect history search ps tail top lookup"
	destroyingVerbs = "delete del rm rb remove destroy terminate purge drop prune erase nuke deregister"
	changingVerbs   = "create add set unset up update upgrade apply deploy publish push put post send invoke run exec scale start stop restart release promote rollback import attach detach enable disable " +
		"cp mv sync tag untag grant revoke assign cancel retry edit patch rename move copy migrate reset rotate restore resize modify mb website"
)

// platformCommand judges the tool of a platform by its verb.
func platformCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* a= app= p= project= e= env= environment= c= config=< o= org= r= region= t= token=")
	c.platformWords(o.rest)
}

// platformWords judges the words of a platform's tool: the first known verb decides. In
// apps:destroy the verb is destroy, and in delete-stack it is delete.
func (c *invoked) platformWords(words []arg) {
	if oneOf(word(words, 0), "login logout auth configure config ssh run exec shell console tunnel proxy dev local") {
		c.zone(ZoneMachine, "uses or changes the user's credentials for the platform")
		return
	}
	for i, w := range words {
		verb := strings.ToLower(w.text[strings.LastIndexByte(w.text, ':')+1:])
		verb, _, _ = strings.Cut(verb, "-")
		switch {
		case i > 4 || !w.known:
		case oneOf(verb, destroyingVerbs):
			c.zone(ZoneExternal, "changes something on the platform")
			c.protect(destroyData, "deletes something on the platform")
			return
		case oneOf(verb, changingVerbs):
			c.zone(ZoneExternal, "changes something on the platform")
			return
		case oneOf(verb, askingVerbs):
			c.zone(ZoneNetwork, "queries the platform")
			return
		}
	}
	c.zone(ZoneExternal, "changes something on the platform")
}
