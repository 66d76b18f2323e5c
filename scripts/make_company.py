"""Write the sample graph of examples/company: the same bytes every time.

The entities of `source/core.jsonl` were written by hand and come first; everything else is composed
from `source/words.toml`. `company.jsonl` is the graph, `hires.jsonl` what changes a month later.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import tomllib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "company"
SEED = 20250215
TODAY = date(2025, 2, 15)
TEAM_SIZE = 9
DOCUMENTS_PER_PROJECT = 3
MEETINGS_PER_TEAM = 4

# Letters that no decomposition takes apart.
LETTERS = str.maketrans({"ł": "l", "æ": "ae", "ø": "o", "ß": "ss"})

Data = dict[str, Any]


@dataclass
class Records:
    """The entities of one file, each once."""

    nodes: dict[str, list[Data]] = field(default_factory=lambda: defaultdict(list))
    edges: dict[str, list[Data]] = field(default_factory=lambda: defaultdict(list))
    known: set[tuple[str, ...]] = field(default_factory=set)

    def node(self, type_name: str, data: Data) -> None:
        present = {name: value for name, value in data.items() if value is not None}
        self.nodes[type_name].append({"type": type_name, "data": present})

    def edge(self, type_name: str, source: str, target: str, **data: Any) -> bool:
        """Connect two nodes, unless they are already connected so."""
        if (type_name, source, target) in self.known:
            return False
        self.known.add((type_name, source, target))
        record: Data = {"edge": type_name, "from": source, "to": target}
        present = {name: value for name, value in data.items() if value is not None}
        self.edges[type_name].append(record | ({"data": present} if present else {}))
        return True

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            record = json.loads(line)
            if "type" in record:
                self.nodes[record["type"]].append(record)
            else:
                self.known.add((record["edge"], record["from"], record["to"]))
                self.edges[record["edge"]].append(record)

    def values(self, type_name: str, name: str) -> set[Any]:
        return {record["data"].get(name) for record in self.nodes[type_name]}

    def text(self) -> str:
        groups = [*self.nodes.values(), *self.edges.values()]
        lines = [json.dumps(record, ensure_ascii=False) for group in groups for record in group]
        return "\n".join(lines) + "\n"


@dataclass
class Field:
    """A field of work and who and what belongs to it."""

    words: Data
    teams: list[str]
    people: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    meetings: list[tuple[str, datetime]] = field(default_factory=list)


class Company:
    """Composes the graph, one kind of entity after the other."""

    def __init__(self, words: Data, core: Iterable[str]) -> None:
        # Not for secrets: the same numbers every time are the point.
        self.rng = random.Random(SEED)  # noqa: S311
        self.words = words
        self.out = Records()
        self.out.read(core)
        self.core_people = {r["data"]["handle"]: r["data"] for r in self.out.nodes["Person"]}
        self.team_of = {r["from"]: r["to"] for r in reversed(self.out.edges["MemberOf"])}
        self.members: dict[str, list[str]] = defaultdict(list)
        self.names = {handle: data["name"] for handle, data in self.core_people.items()}
        self.seniors: dict[str, list[str]] = defaultdict(list)
        self.bosses: dict[str, str] = {}
        self.leads = {"discovery": "bo", "foundation": "ada", "accounts": "eli"}
        self.team_names = {r["data"]["slug"]: r["data"]["name"] for r in self.out.nodes["Team"]}
        self.project_names: dict[str, str] = {}
        self.started = {h: date.fromisoformat(d["startedOn"]) for h, d in self.core_people.items()}
        self.customers: dict[str, str] = {}
        self.commissioner: dict[str, str] = {}
        self.fields = [
            Field(found, [*found["home"], *(team[0] for team in found["teams"])])
            for found in words["field"]
        ]

    def build(self) -> None:
        self.places_and_skills()
        self.topics_and_teams()
        self.heads()
        for each in self.fields:
            self.people(each)
        self.all_customers()
        for each in self.fields:
            self.projects(each)
        self.dependencies()
        for each in self.fields:
            self.documents(each)
            self.meetings(each)
            self.decisions(each)

    def day(self, first: date, last: date = TODAY) -> date:
        """A working day of a period."""
        found = first + timedelta(days=self.rng.randrange(max(0, (last - first).days) + 1))
        return found - timedelta(days=max(0, found.weekday() - 4))

    def moment(self, first: date, last: date = TODAY) -> datetime:
        start = datetime.combine(self.day(first, last), datetime.min.time())
        return start + timedelta(minutes=5 * self.rng.randrange(7 * 12, 18 * 12))

    def there(self, people: list[str], moment: datetime) -> list[str]:
        """Those who had started by then."""
        return [handle for handle in people if self.started[handle] <= moment.date()]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one(self, words: str) -> str:
        """One of some words; the more often it is there, the likelier."""
        return self.rng.choice(words.split())

    def some(self, values: list[Any], most: int) -> list[Any]:
        return self.rng.sample(values, min(len(values), self.rng.randint(1, most)))

    def places_and_skills(self) -> None:
        for office in self.words["office"]:
            self.out.node("Office", office)
        areas = {"architecture": "engineering", "research": "design"}
        for each in self.fields:
            areas |= dict.fromkeys(each.words["skills"], each.words["area"])
        for skill, area in sorted(areas.items()):
            self.out.node("Skill", {"slug": slug(skill), "name": skill.capitalize(), "area": area})

    def topics_and_teams(self) -> None:
        known = self.out.values("Topic", "tag")
        for each in self.fields:
            (parent, _), *_ = each.words["topics"]
            for tag, name in each.words["topics"]:
                if tag not in known:
                    self.out.node("Topic", {"tag": tag, "name": name})
                if tag != parent:
                    self.out.edge("SubtopicOf", tag, parent)
            for team, name, summary in each.words["teams"]:
                kind = each.words["kind"] if team != "helpdesk" else "support"
                self.out.node(
                    "Team", {"slug": team, "name": name, "kind": kind, "summary": summary}
                )
                self.team_names[team] = name

    def heads(self) -> None:
        name, title = self.words["director"]
        director = self.person(name, title, "principal", skills=["facilitation"])
        self.bosses["platform"] = "ada"
        for kind, (name, title) in self.words["heads"].items():
            self.bosses[kind] = self.person(name, title, "principal", skills=["hiring", "coaching"])
        for boss in self.bosses.values():
            self.out.edge("ReportsTo", boss, director)
        self.out.edge("ReportsTo", "eli", self.bosses["sales"])
        for handle, data in self.core_people.items():
            self.abilities(handle, data.get("skills", []))
            self.seat(handle, date.fromisoformat(data["startedOn"]))
            if handle in self.team_of:
                self.members[self.team_of[handle]].append(handle)

    def person(self, name: str, title: str, level: str, *, skills: list[str]) -> str:
        handle = slug(name)
        assert handle not in self.names
        self.names[handle] = name
        started = self.started[handle] = self.day(date(2017, 6, 1), date(2025, 1, 31))
        self.out.node(
            "Person",
            {
                "handle": handle,
                "name": name,
                "email": f"{handle}@company.example",
                "title": title,
                "level": level,
                "startedOn": str(started),
                "skills": skills or None,
                "capacity": self.rng.choice([1, 1, 1, 1, 0.9, 0.8, 0.8, 0.6, 0.5, None]),
            },
        )
        self.seat(handle, started)
        self.abilities(handle, skills)
        return handle

    def seat(self, handle: str, since: date) -> None:
        if self.chance(0.94):
            open_then = [o for o in self.words["office"] if o["openedOn"] <= str(since)]
            weights = [office["desks"] for office in open_then] or [1]
            offices = open_then or self.words["office"][:1]
            office = self.rng.choices(offices, weights)[0]
            self.out.edge("BasedIn", handle, office["slug"], since=str(since))

    def abilities(self, handle: str, skills: list[str]) -> None:
        for skill in skills:
            grade = self.one("learning working working expert")
            self.out.edge("HasSkill", handle, slug(skill), grade=grade)

    def new_name(self) -> str:
        while True:
            first, last = self.rng.choice(self.words["first_names"]), self.words["last_names"]
            name = f"{first} {self.rng.choice(last)}"
            if slug(name) not in self.names:
                return name

    def people(self, each: Field) -> None:
        for team in each.teams:
            if team not in self.leads:
                title = f"Team lead, {self.team_names[team]}"
                skills = self.some(each.words["skills"], 3)
                lead = self.person(self.new_name(), title, "lead", skills=skills)
                self.out.edge("ReportsTo", lead, self.bosses[each.words["kind"]])
                since = str(self.day(self.started[lead]))
                self.out.edge("MemberOf", lead, team, role="lead", since=since)
                self.leads[team] = lead
                self.members[team].append(lead)
            for _ in range(TEAM_SIZE + self.rng.randint(-3, 3)):
                self.member(each, team)
            each.people += self.members[team]

    def member(self, each: Field, team: str) -> None:
        level = self.one("junior junior senior senior senior principal")
        title = self.rng.choice(each.words["titles"])
        title = title if level == "junior" else ranked(level, title)
        everywhere = [skill for other in self.fields for skill in other.words["skills"]]
        skills = self.some(each.words["skills"], 3)
        if self.chance(0.3):
            skills = list(dict.fromkeys([*skills, self.rng.choice(everywhere)]))
        handle = self.person(self.new_name(), title, level, skills=skills)
        seniors = self.seniors[team] if level == "junior" else []
        self.out.edge("ReportsTo", handle, self.rng.choice([self.leads[team], *seniors]))
        if level == "senior":
            self.seniors[team].append(handle)
        since = self.day(self.started[handle]) if self.chance(0.8) else None
        self.out.edge("MemberOf", handle, team, role="member", since=str(since) if since else None)
        if self.chance(0.1):
            self.out.edge("MemberOf", handle, self.rng.choice(list(self.team_names)), role="guest")
        self.members[team].append(handle)

    def all_customers(self) -> None:
        numbers: dict[str, int] = defaultdict(lambda: 1010)
        for name in self.words["customers"]:
            region = self.one("emea emea emea americas americas apac")
            account = numbers[region] = numbers[region] + self.rng.randint(1, 9)
            data = {"region": region, "account": account, "name": name}
            data["tier"] = self.one("basic basic plus plus enterprise")
            self.out.node("Customer", data | {"since": str(self.day(date(2019, 1, 1)))})
            entity_id = json.dumps([str(account), region], separators=(",", ":"))
            self.customers[entity_id] = name

    def projects(self, each: Field) -> None:
        for number, (name, summary) in enumerate(each.words["projects"], start=11):
            code = f"{each.words['code']}-{number}"
            self.project_names[code] = name
            each.projects.append(code)
            status = self.one("active active active done done paused idea")
            has_date = status != "idea" and self.chance(0.85)
            due = self.day(date(2023, 3, 1), date(2026, 12, 18)) if has_date else None
            if due and status == "done":
                due = min(due, TODAY - timedelta(days=self.rng.randint(5, 500)))
            budget = self.rng.randrange(12, 480) * 1000.0 if self.chance(0.85) else None
            data = {"code": code, "name": name, "status": status, "budget": budget}
            data |= {"priority": self.rng.randint(1, 5), "dueOn": str(due) if due else None}
            self.out.node("Project", data | {"summary": self.filled(summary, each)[0]})
            team = self.rng.choice(each.teams)
            self.out.edge("Owns", team, code)
            for handle in self.rng.sample(self.members[team], min(3, len(self.members[team]))):
                since = str(self.day(self.started[handle])) if self.chance(0.8) else None
                share = self.rng.randrange(2, 15) / 20
                self.out.edge("WorksOn", handle, code, share=share, since=since)
            if each.words["kind"] != "support" and status != "idea" and self.chance(0.8):
                customer = self.rng.choice(list(self.customers))
                self.commissioner[code] = self.customers[customer]
                signed = str(self.day(date(2022, 1, 3)))
                self.out.edge("Commissioned", customer, code, signedOn=signed)

    def dependencies(self) -> None:
        codes = [code for each in self.fields for code in each.projects]
        reasons = ["Shares its tables", "Needs the same people", "Builds on its interface", None]
        for place, code in enumerate(codes[3:], start=3):
            if self.chance(0.6):
                # Only to what stands before it: nothing waits for itself.
                other = self.rng.choice(codes[max(0, place - 12) : place])
                self.out.edge("DependsOn", code, other, reason=self.rng.choice(reasons))

    def filled(self, text: str, each: Field, **known: str) -> tuple[str, list[str]]:
        """A text with its gaps filled, and the people it mentions."""
        handle = self.rng.choice(each.people)
        gaps = {
            "person": self.names[handle],
            "project": self.project_names[self.rng.choice(each.projects)] if each.projects else "",
            "team": self.team_names[self.rng.choice(each.teams)],
            "customer": self.rng.choice(list(self.customers.values())),
            "office": self.rng.choice(self.words["office"])["city"],
            "topic": self.rng.choice(each.words["topics"])[1].lower(),
            "thing": self.rng.choice(each.words["things"]),
            "month": self.rng.choice(self.words["months"]),
            "number": str(self.rng.randint(3, 38)),
            "share": str(self.rng.randint(4, 46)),
        }
        return text.format(**(gaps | known)), [handle] if "{person}" in text else []

    def documents(self, each: Field) -> None:
        for code in each.projects:
            for _ in range(DOCUMENTS_PER_PROJECT + self.rng.randint(-1, 1)):
                self.document(each, code)

    def document(self, each: Field, code: str) -> None:
        kind = self.one("note note note spec spec report report")
        if code in self.commissioner and self.chance(0.2):
            kind = "contract"
        known = {"project": self.project_names[code]}
        if code in self.commissioner:
            known["customer"] = self.commissioner[code]
        titles = [self.filled(title, each, **known)[0] for title in self.words["titles"][kind] * 3]
        taken = self.out.values("Document", "slug")
        fresh = [title for title in titles if slug(title) not in taken]
        title = self.rng.choice(fresh or titles)
        name = unique(slug(title), taken)
        own, others = list(self.words[f"{kind}s"]), list(each.words["sentences"])
        count = self.rng.randint(4, 6) if kind == "contract" else self.rng.randint(1, 2)
        parts = sorted(self.rng.sample(own, count), key=own.index)
        if kind != "contract":
            parts = [parts[0], *self.rng.sample(others, self.rng.randint(2, 5)), *parts[1:]]
        told = [self.filled(part, each, **known) for part in parts]
        updated = self.moment(date(2022, 5, 2))
        tags = self.some([tag for tag, _ in each.words["topics"]], 3)
        signed = f"Signed for {known.get('customer')} on {updated:%d %B %Y}: {title}.\n".encode()
        data: Data = {"slug": name, "title": title[0].upper() + title[1:], "kind": kind}
        data["body"] = " ".join(text for text, _ in told)
        data["summary"] = told[1][0] if self.chance(0.4) else None
        data["language"] = "en" if self.chance(0.88) else None
        data["labels"] = [*tags, kind] if self.chance(0.7) else None
        data["updatedAt"] = stamp(updated)
        data["embedding"] = self.embedding(each) if self.chance(0.85) else None
        is_signed = kind == "contract"
        data["attachment"] = f"base64:{base64.b64encode(signed).decode()}" if is_signed else None
        self.out.node("Document", data)
        self.document_edges(each, name, updated, people=[p for _, found in told for p in found])
        self.out.edge("Describes", name, code)
        for tag in tags:
            weight = self.rng.randint(1, 20) / 20 if self.chance(0.8) else None
            self.out.edge("About", name, tag, weight=weight)
        each.documents.append(name)

    def embedding(self, each: Field) -> list[float]:
        place = self.fields.index(each) + 1
        middle = [place >> bit & 1 for bit in range(4)]
        return [round(0.7 * at + self.rng.uniform(0, 0.3), 3) for at in middle]

    def document_edges(
        self, each: Field, name: str, updated: datetime, *, people: list[str]
    ) -> None:
        written = updated - timedelta(days=self.rng.randint(0, 90))
        for author in self.some(self.there(each.people, written), 2 if self.chance(0.25) else 1):
            self.out.edge("Wrote", author, name, at=stamp(written))
        for handle in people:
            self.out.edge("Mentions", name, handle)
        people = self.there(each.people, updated)
        for reviewer in self.some(people, 2) if self.chance(0.6) else []:
            verdict = self.one("approved approved changes rejected")
            at = stamp(updated + timedelta(minutes=self.rng.randint(30, 9000)))
            self.out.edge("Reviewed", reviewer, name, verdict=verdict, at=at)
        for other in (
            self.some(each.documents[-12:], 2) if each.documents and self.chance(0.6) else []
        ):
            self.out.edge("Cites", name, other)
        if self.chance(0.3):
            text, _ = self.filled(self.rng.choice(self.words["comments"]), each)
            at = stamp(updated + timedelta(minutes=self.rng.randint(60, 20000)))
            self.out.edge("Commented", self.rng.choice(people), name, text=text, at=at)

    def meetings(self, each: Field) -> None:
        for team in each.teams:
            for _ in range(MEETINGS_PER_TEAM):
                held = self.moment(date(2023, 9, 4))
                kind = self.one("planning review retrospective workshop")
                known = self.out.values("Meeting", "slug")
                name = unique(f"{team}-{kind}-{held:%Y-%m}", known)
                notes = [self.filled(part, each)[0] for part in self.some(self.words["minutes"], 3)]
                data: Data = {"slug": name, "heldAt": stamp(held)}
                data["minutes"] = self.rng.choice([25, 45, 50, 60, 60, 90, 120])
                self.out.node("Meeting", data | {"notes": " ".join(notes) or None})
                each.meetings.append((name, held))
                for handle in self.some(self.there(self.members[team], held), 8):
                    self.out.edge("Attended", handle, name)

    def decisions(self, each: Field) -> None:
        answered: list[tuple[datetime, str, str]] = []
        for question, outcome, state in each.words["decisions"]:
            name = "-".join(slug(question).split("-")[:7])
            data = {"slug": name, "question": question, "state": state}
            meeting, held = self.rng.choice(each.meetings)
            if state != "proposed":
                at = held + timedelta(minutes=self.rng.randint(10, 45))
                data |= {"outcome": outcome, "decidedAt": stamp(at)}
                answered.append((at, state, name))
            self.out.node("Decision", data)
            if state != "proposed" or self.chance(0.4):
                self.out.edge("DecidedIn", name, meeting)
            for code in self.some(each.projects, 2):
                self.out.edge("Affects", name, code, impact=self.rng.choice(["low", "high", None]))
        answered.sort()
        if answered[-1][1] == "accepted" and answered[0][1] == "rejected":
            self.out.edge("Supersedes", answered[-1][2], answered[0][2])


def hires(company: Company) -> Records:
    """What is merged on a branch a month later: new people, and people who changed."""
    known = company.out
    company.out = Records()
    for each in company.fields:
        team = company.rng.choice(each.teams)
        company.member(each, team)
        newcomer = company.members[team][-1]
        company.out.nodes["Person"][-1]["data"]["startedOn"] = "2025-03-17"
        for edge in (*company.out.edges["BasedIn"], *company.out.edges["MemberOf"]):
            if edge["from"] == newcomer and edge.get("data", {}).get("since"):
                edge["data"]["since"] = "2025-03-17"
        company.out.edge("WorksOn", newcomer, each.projects[0], share=0.5, since="2025-03-17")
    changed: dict[str, Data] = {
        "cleo": {"level": "senior", "title": "Senior engineer", "capacity": 1},
        "dev": {"title": "Principal designer", "level": "principal"},
        "fern": {"title": "Engineer", "skills": ["python"]},
    }
    juniors = [r["data"] for r in known.nodes["Person"][10:] if r["data"]["level"] == "junior"]
    for data in juniors[::12]:
        changed[data["handle"]] = {"level": "senior", "title": ranked("senior", data["title"])}
    for record in known.nodes["Person"]:
        if record["data"]["handle"] in changed:
            company.out.node("Person", record["data"] | changed[record["data"]["handle"]])
    company.out.edge("MemberOf", "fern", "discovery", role="member", since="2025-03-17")
    company.out.edge("MemberOf", "cleo", "discovery", role="lead", since="2024-02-05")
    return company.out


def ranked(level: str, title: str) -> str:
    return f"{level.capitalize()} {title[0].lower()}{title[1:]}"


def slug(text: str) -> str:
    """A text in small ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", text.lower().translate(LETTERS))
    return re.sub("[^a-z0-9]+", "-", plain.encode("ascii", "ignore").decode()).strip("-")


def unique(name: str, known: set[Any]) -> str:
    """The name, or the first numbered one that is free."""
    names = [name, *(f"{name}-{number}" for number in range(2, len(known) + 3))]
    return next(found for found in names if found not in known)


def stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=FOLDER, help="where to write both files")
    folder = parser.parse_args().into
    source = FOLDER / "source"
    words = tomllib.loads((source / "words.toml").read_text())
    company = Company(words, (source / "core.jsonl").read_text().splitlines())
    company.build()
    graph = company.out.text()
    (folder / "company.jsonl").write_text(graph)
    (folder / "hires.jsonl").write_text(hires(company).text())


if __name__ == "__main__":
    main()
