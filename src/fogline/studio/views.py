"""The pages: what is asked of a request, what is read for it, which template shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from fogline import units
from fogline._validation.parameters import Neighbours
from fogline.accounting._rounding import digits_up
from fogline.accounting.cautions import budget_cautions
from fogline.accounting.guarantee import Guarantee
from fogline.report._svg import significant
from fogline.report.ledger import Item, Statement
from fogline.studio.catalogue import Facts, NotReadable, as_reading, suggested_range
from fogline.studio.config import READING, Dataset
from fogline.studio.explorer import (
    POINTS,
    Condition,
    Reading,
    comparison,
    curve,
    in_words,
    kind_content,
    slice_conditions,
    slice_fault,
)
from fogline.studio.exports import EXPORTS
from fogline.studio.outlook import attacker_success, budget_bar, risk_rows, trade_off
from fogline.studio.questions import (
    DEFAULT_RECORDS,
    MOST_WORDS,
    Fields,
    Question,
    body_fields,
    last_of,
    number_of,
    parse_question,
    query_fields,
    question_fields,
)
from fogline.studio.rendering import constant_page, fragment, page, static_files
from fogline.studio.security import COOKIE, SESSION_SECONDS, Role, TooLarge
from fogline.studio.store import StoredRelease
from fogline.studio.work import FAILED

if TYPE_CHECKING:
    from fogline.studio.app import Studio

__all__ = ["SLIDER", "routes"]

View = Callable[[Request, Fields], Response]
Endpoint = Callable[[Request], Awaitable[Response]]

SLIDER = tuple(
    float(f"{value:.2g}")
    for value in [*np.geomspace(0.05, 1.0, 31).tolist(), *np.geomspace(1.0, 10.0, 26)[1:].tolist(), 12, 15, 20]
)
"""Budgets that the slider stops at."""

CURVE_EPSILONS = np.geomspace(0.05, 20.0, 40)
READINGS = (
    ("", "Overview"),
    ("curve", "Slices and quantiles"),
    ("ask", "Ask"),
    ("modes", "Modes"),
    ("clusters", "Clusters"),
    ("branches", "Branches"),
    ("compare", "Compare"),
    ("export", "Export"),
)
BECAUSE = "What can be read from this release cannot be shown: it may hold too little for it."


def _error(status: int) -> Response:
    return Response(constant_page(status), status, media_type="text/html")


class Views:
    """Pages of one studio.

    Parameters
    ----------
    studio : Studio
    """

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.config = studio.config

    # -- who is there ---------------------------------------------------------------------------------------

    def session(self, request: Request) -> tuple[str, Role] | None:
        """Return the cookie and the role of whoever asks."""
        name = request.cookies.get(COOKIE, "")
        role = self.studio.sessions.role_of(name) if name else None
        return None if role is None else (name, role)

    def endpoint(self, view: View, *, role: Role | None = None, public: bool = False) -> Endpoint:
        """Return what Starlette calls: the role is checked, forms are read, the view runs beside the event loop."""

        async def answer(request: Request) -> Response:
            posted = request.method == "POST"
            try:
                fields = await body_fields(request) if posted else query_fields(request)
            except (ValueError, UnicodeDecodeError):
                return _error(400)
            except TooLarge:
                return _error(413)
            who = self.session(request)
            if not public and who is None:
                return _error(403) if posted else RedirectResponse("/enter", 303)
            if role is not None and (who is None or who[1] != role):
                return _error(403)
            return await run_in_threadpool(view, request, fields)

        return answer

    def show(self, request: Request, template: str, status: int = 200, **content: Any) -> Response:
        """Return a page for whoever asks."""
        who = self.session(request)
        frame = {"studio": self.config.title, "role": None if who is None else who[1]}
        return Response(page(template, {**frame, **content}), status, media_type="text/html")

    def key(self, request: Request, purpose: str, content: Any = None) -> str:
        """Return a form key for whoever asks."""
        who = self.session(request)
        return "" if who is None else self.studio.keys.issue(who[0], purpose, content)

    # -- coming and going -----------------------------------------------------------------------------------

    def enter(self, request: Request, fields: Fields) -> Response:
        """Show the form for a token, or take one."""
        if request.method != "POST":
            if self.session(request) is not None:
                return RedirectResponse("/", 303)
            return self.show(request, "enter.html.j2", wrong=False)
        role = self.studio.tokens.role_of(last_of(fields, "token"))
        if role is None:
            return self.show(request, "enter.html.j2", 403, wrong=True)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            COOKIE,
            self.studio.sessions.open(role),
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.config.https,
        )
        return response

    def leave(self, request: Request, _: Fields) -> Response:
        """Forget whoever asks."""
        self.studio.sessions.close(request.cookies.get(COOKIE, ""))
        response = RedirectResponse("/enter", 303)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=self.config.https)
        return response

    def static(self, request: Request, _: Fields) -> Response:
        """Return one of the few files."""
        found = static_files().get(request.path_params["name"])
        if found is None:
            return _error(404)
        return Response(found[0], media_type=found[1], headers={"cache-control": "private, max-age=3600"})

    # -- the start and the budget ---------------------------------------------------------------------------

    def home(self, request: Request, _: Fields) -> Response:
        """Show data sets, releases, proposals and what was left unfinished."""
        account = self.studio.account
        told = [(dataset, self._budget(self.studio.statement(dataset))) for dataset in self.config.datasets]
        return self.show(
            request,
            "home.html.j2",
            datasets=told,
            releases=self.studio.releases()[:50],
            proposals=[(one, self.studio.release(one.release)) for one in self.studio.proposals()[:50]],
            unfinished=self.studio.releasing.unfinished(account),
            titles={dataset.id: dataset.title for dataset in self.config.datasets},
        )

    def _budget(self, statement: Statement, epsilon: float = 0.0) -> dict[str, Any]:
        """What is spent and left of a data set, and what a pure release would take."""
        cap = statement.caps.epsilon or 0.0
        left = statement.remaining.pure
        cost = self.studio.ledger.release_cost(epsilon, 0.0) if epsilon else None
        plan = None if cost is None else self.studio.ledger.plan(cost, dataset=statement.dataset)
        after = left if plan is None or plan.after is None else plan.after.pure
        return {
            "cap": cap,
            "left": left,
            "after": after,
            "fits": plan is None or plan.fits,
            "times": 0 if plan is None else plan.times,
            "bar": Markup(budget_bar(cap, max(0.0, cap - left), max(0.0, left - after) if plan else 0.0)),
            "unit": statement.unit,
        }

    def ledger(self, request: Request, _: Fields) -> Response:
        """Show what was spent on what, and what was reserved without an answer."""
        told = []
        for dataset in self.config.datasets:
            statement = self.studio.statement(dataset, fresh=True)
            untold = self.studio.releasing.first_untold_entry(dataset.id)
            items = [
                (item, item.amount / 1e12, _answer_words(item, untold)) for item in reversed(statement.items[-200:])
            ]
            told.append((dataset, self._budget(statement), items))
        return self.show(request, "ledger.html.j2", told=told)

    # -- a question -----------------------------------------------------------------------------------------

    def _dataset(self, request: Request) -> Dataset | None:
        return self.config.dataset(request.path_params["dataset"])

    def _read(self, dataset: Dataset, fields: Fields) -> tuple[Facts, Question | None, dict[str, str]]:
        """Facts of a data set, and the question that a form asks of it."""
        reading = as_reading({name: values[-1] for name, values in fields.items() if values and name in READING})
        unit = dataset.unit or last_of(fields, "unit") or None
        names = self.studio.catalogue.facts(dataset, None, reading).columns
        facts = self.studio.catalogue.facts(dataset, unit if unit in names else dataset.unit, reading)
        filled = dict(fields)
        for column in fields.get("column", [])[:8]:
            if f"range.{column}" not in fields and f"low.{column}" not in fields:
                filled |= _suggestion(dataset, column)
        question, faults = parse_question(dataset, filled, facts.columns)
        return facts, question, faults

    def data(self, request: Request, fields: Fields) -> Response:
        """Show the form of a question."""
        dataset = self._dataset(request)
        if dataset is None:
            return _error(404)
        try:
            facts, question, faults = self._read(dataset, fields)
        except NotReadable as error:
            return self.show(request, "unreadable.html.j2", dataset=dataset, words=str(error), form=fields)
        asked_before = bool(fields)
        statement = self.studio.statement(dataset)
        return self.show(
            request,
            "data.html.j2",
            dataset=dataset,
            facts=facts,
            rows=[self._column_row(dataset, name, fields) for name in facts.columns],
            ranges=[(name, units.named(name)) for name in units.names()],
            reading=[(name, last_of(fields, name) or _text(dataset.reading.get(name))) for name in READING],
            check=facts.check,
            epsilon=last_of(fields, "epsilon") or f"{_first_epsilon(statement):g}",
            records=last_of(fields, "records") or str(dataset.expect_records or DEFAULT_RECORDS),
            unit=dataset.unit or (last_of(fields, "unit") if "unit" in fields else _usual_unit(statement)),
            unit_names=self.studio.catalogue.facts(dataset, None, as_reading(_last(fields))).columns,
            fixed_unit=statement.unit,
            most=last_of(fields, "most") or str(_usual_contributions(dataset, statement)),
            slider=SLIDER,
            faults=faults if asked_before else {},
            outlook=Markup(self._outlook(dataset, question, faults, fields)),
        )

    def _column_row(self, dataset: Dataset, name: str, fields: Fields) -> dict[str, Any]:
        suggested = _suggestion(dataset, name)
        chosen = name in fields.get("column", [])
        told = {key: last_of(fields, f"{key}.{name}") for key in ("range", "low", "high", "step", "typical", "spread")}
        if f"range.{name}" not in fields and f"low.{name}" not in fields:
            told |= {key.partition(".")[0]: values[-1] for key, values in suggested.items()}
        return {"name": name, "chosen": chosen, **told}

    def outlook(self, request: Request, fields: Fields) -> Response:
        """Show what a question would cost, show and risk: the part of the page that a slider renews."""
        dataset = self._dataset(request)
        if dataset is None:
            return _error(404)
        try:
            _, question, faults = self._read(dataset, fields)
        except NotReadable as error:
            question, faults = None, {"reading": str(error)}
        return Response(self._outlook(dataset, question, faults, fields), media_type="text/html")

    def _outlook(self, dataset: Dataset, question: Question | None, faults: Mapping[str, str], fields: Fields) -> str:
        statement = self.studio.statement(dataset)
        if question is None:
            epsilon = number_of(fields, "epsilon")
            known = epsilon if epsilon is not None and 0.01 <= epsilon <= 20 else 0.0
            return page("outlook.html.j2", {"ready": False, "faults": faults, **self._budget(statement, known)})
        neighbours, epsilon = statement.neighbours, question.epsilon
        accuracy = self.studio.outlooks.accuracy(question, neighbours)
        along = [self.studio.outlooks.accuracy(question, neighbours, float(each)).rows for each in CURVE_EPSILONS]
        lines = [
            (row.column, np.array([rows[j].median.total / row.width for rows in along if rows]))
            for j, row in enumerate(accuracy.rows)
        ]
        lines = [(name, line) for name, line in lines if len(line) == len(CURVE_EPSILONS)]
        success = self.studio.memory.get(("risk", neighbours), lambda: attacker_success(CURVE_EPSILONS, neighbours))
        content = {
            "ready": True,
            "faults": {},
            **self._budget(statement, epsilon),
            "epsilon": epsilon,
            "rows": [_accuracy_words(row) for row in accuracy.rows],
            "count_error": None if accuracy.count_error is None else significant(accuracy.count_error, 2),
            "records": question.records,
            "done": accuracy.done,
            "wanted": accuracy.wanted,
            "shape": accuracy.shape,
            "risks": [
                (f"{100 * row.before:g}", digits_up(100 * row.after, 3)) for row in risk_rows(epsilon, neighbours)
            ],
            "who": question.unit or "record",
            "figures": [Markup(one) for one in trade_off(CURVE_EPSILONS, lines, success, epsilon)],
            "cautions": budget_cautions(epsilon, 0.0),
        }
        return page("outlook.html.j2", content)

    def review(self, request: Request, fields: Fields) -> Response:
        """Show the whole question once more, with what it promises and takes, before it is asked."""
        dataset = self._dataset(request)
        if dataset is None:
            return _error(404)
        try:
            _, question, _ = self._read(dataset, fields)
        except NotReadable:
            question = None
        if question is None:  # the form says what is missing
            return RedirectResponse(f"/data/{dataset.id}?{urlencode(fields, doseq=True)}", 303)
        who = self.session(request)
        role: Role = "analyst" if who is None else who[1]
        proposal = self.studio.proposal(last_of(fields, "proposal"))
        content = {"question": question, "proposal": None if proposal is None else proposal.id}
        purpose = "release" if role == "custodian" else "propose"
        statement = self.studio.statement(dataset)
        return self.show(
            request,
            "review.html.j2",
            dataset=dataset,
            question=question,
            promise=_promise(question, statement.neighbours),
            proposal=proposal,
            key=self.key(request, purpose, content),
            back=f"/data/{dataset.id}?{question.query()}",
            cautions=budget_cautions(question.epsilon, 0.0),
            paid=self._paid_before(dataset, question),
            **self._budget(statement, question.epsilon),
        )

    def _paid_before(self, dataset: Dataset, question: Question) -> StoredRelease | None:
        """A release of the same question, which would be answered from the ledger."""
        same = [one for one in self.studio.releases() if one.dataset == dataset.id]
        plain = [replace(one.question, records=0) for one in same]
        wanted = replace(question, records=0)
        return next((one for one, other in zip(same, plain, strict=True) if other == wanted), None)

    def release(self, request: Request, fields: Fields) -> Response:
        """Spend: once for each form that was shown, and for exactly what it showed."""
        dataset, who = self._dataset(request), self.session(request)
        if dataset is None or who is None:
            return _error(404)
        name = last_of(fields, "key")
        redeemed = self.studio.keys.redeem(who[0], "release", name)
        if redeemed is None or redeemed.content["question"].dataset != dataset.id:
            return _error(403)
        if not redeemed.first:  # the same form sent twice leads to the same release
            return _error(409) if redeemed.outcome is None else RedirectResponse(f"/progress/{redeemed.outcome}", 303)
        note = self.studio.releasing.begin(
            dataset,
            redeemed.content["question"],
            neighbours=self.studio.statement(dataset).neighbours,
            proposal=redeemed.content["proposal"],
            after=self._prepare,
        )
        self.studio.keys.conclude(name, note.id)
        return RedirectResponse(f"/progress/{note.id}", 303)

    def _prepare(self, name: str) -> None:
        """Read the overview of a new release before somebody asks for it."""
        try:
            self._part(name, "density")
        except (ValueError, TypeError):  # the page says so when it is asked for
            return

    def work(self, request: Request, _: Fields) -> Response:
        """Show a release on its way, or what became of it."""
        found = self.studio.releasing.outcome(request.path_params["work"], self.studio.account)
        if found is None:
            return _error(404)
        if found.told and found.note.release is not None:
            return RedirectResponse(f"/releases/{found.note.release}", 303)
        dataset = self.config.dataset(found.note.question.dataset)
        key = self.key(request, "fetch", found.note.id) if found.ending == "answered" else ""
        return self.show(
            request, "work.html.j2", outcome=found, dataset=dataset, failed=FAILED, key=key,
            steps=self.config.time_steps,
        )  # fmt: skip

    def work_state(self, request: Request, _: Fields) -> Response:
        """Say whether there is something to show."""
        found = self.studio.releasing.outcome(request.path_params["work"], self.studio.account)
        if found is None:
            return _error(404)
        return JSONResponse({"told": found.told, "elapsed": int(found.elapsed), "next": int(found.next_step)})

    def fetch(self, request: Request, fields: Fields) -> Response:
        """Fetch an answer that is paid for and was not written when the studio was stopped: free."""
        who = self.session(request)
        redeemed = None if who is None else self.studio.keys.redeem(who[0], "fetch", last_of(fields, "key"))
        note = None if redeemed is None else self.studio.store.note(redeemed.content)
        dataset = None if note is None else self.config.dataset(note.question.dataset)
        if redeemed is None or note is None or dataset is None or not redeemed.first:
            return _error(403)
        found = self.studio.releasing.outcome(note.id, self.studio.account)
        if found is None or found.ending != "answered":
            return _error(403)

        def concluded(release: str) -> None:
            self.studio.store.put_note(replace(note, state="done", release=release))
            self._prepare(release)

        neighbours = self.studio.statement(dataset).neighbours
        again = self.studio.releasing.begin(dataset, note.question, neighbours=neighbours, after=concluded)
        return RedirectResponse(f"/progress/{again.id}", 303)

    # -- proposals ------------------------------------------------------------------------------------------

    def propose(self, request: Request, fields: Fields) -> Response:
        """Keep an analyst's question for the custodian."""
        who = self.session(request)
        redeemed = None if who is None else self.studio.keys.redeem(who[0], "propose", last_of(fields, "key"))
        if redeemed is None:
            return _error(403)
        if redeemed.first:
            made = self.studio.store.propose(redeemed.content["question"], last_of(fields, "why", 500))
            if made is None:
                return _error(409)
        return RedirectResponse("/#proposals", 303)

    def proposal(self, request: Request, _: Fields) -> Response:
        """Show a proposal and, to a custodian, what can be done with it."""
        found = self.studio.proposal(request.path_params["proposal"])
        dataset = None if found is None else self.config.dataset(found.question.dataset)
        if found is None or dataset is None:
            return _error(404)
        fields = urlencode([*question_fields(found.question), ("proposal", found.id)])
        return self.show(
            request,
            "proposal.html.j2",
            proposal=found,
            dataset=dataset,
            review=f"/data/{dataset.id}/review?{fields}",
            change=f"/data/{dataset.id}?{found.question.query()}",
            key=self.key(request, "decline", found.id),
            release=self.studio.release(found.release),
            **self._budget(self.studio.statement(dataset), found.question.epsilon),
        )

    def decline(self, request: Request, fields: Fields) -> Response:
        """Decline a proposal, with a word for the analyst."""
        who = self.session(request)
        redeemed = None if who is None else self.studio.keys.redeem(who[0], "decline", last_of(fields, "key"))
        if redeemed is None or redeemed.content != request.path_params["proposal"]:
            return _error(403)
        self.studio.store.settle(redeemed.content, "declined", reply=last_of(fields, "reply", 500))
        return RedirectResponse("/#proposals", 303)

    # -- a release ------------------------------------------------------------------------------------------

    def _stored(self, request: Request) -> StoredRelease | None:
        return self.studio.release(request.path_params["release"])

    def _part(self, name: str, kind: str, response: str | None = None) -> Any:
        """What the report shows of a kind of reading."""
        density = self.studio.store.density(name)
        return self.studio.memory.get((name, kind, response), lambda: fragment(*kind_content(density, kind, response)))

    def _show_reading(self, request: Request, stored: StoredRelease, tab: str, **content: Any) -> Response:
        density = self.studio.store.density(stored.id)
        tabs = [(name, words) for name, words in READINGS if name != "branches" or density.spec.d > 1]
        dataset = self.config.dataset(stored.dataset)
        base = {
            "stored": stored,
            "tabs": tabs,
            "tab": tab,
            "columns": density.column_names,
            "guarantee": density.guarantee,
            "count": f"{density.count:.0f}",
            "count_error": significant(density.count_sd, 2),
            "again": None if dataset is None else self._remeasure(dataset, stored.question),
            "message": density.message,
        }
        return self.show(request, f"release_{tab or 'overview'}.html.j2", **{**base, **content})

    @staticmethod
    def _remeasure(dataset: Dataset, question: Question) -> str:
        """Address of the form of the same question at twice the budget."""
        return f"/data/{dataset.id}?{question.with_epsilon(min(2 * question.epsilon, 20.0)).query()}"

    def overview(self, request: Request, _: Fields) -> Response:
        """Show the density as the report does."""
        return self._report_part(request, "", "density")

    def modes(self, request: Request, _: Fields) -> Response:
        """Show the modes as the report does."""
        return self._report_part(request, "modes", "modes")

    def clusters(self, request: Request, _: Fields) -> Response:
        """Show the clusters as the report does."""
        return self._report_part(request, "clusters", "clusters")

    def branches(self, request: Request, fields: Fields) -> Response:
        """Show the branches of one column given the others, as the report does."""
        stored = self._stored(request)
        if stored is None:
            return _error(404)
        names = self.studio.store.density(stored.id).column_names
        chosen = last_of(fields, "y")
        response = chosen if chosen in names else names[-1]
        return self._report_part(request, "branches", "branches", response)

    def _report_part(self, request: Request, tab: str, kind: str, response: str | None = None) -> Response:
        stored = self._stored(request)
        if stored is None:
            return _error(404)
        try:
            part, refused = self._part(stored.id, kind, response), ""
        except (ValueError, TypeError):
            part, refused = None, BECAUSE
        return self._show_reading(request, stored, tab, part=part, refused=refused, response=response)

    def curve(self, request: Request, fields: Fields) -> Response:
        """Show one column, of everyone or of groups, at a resolution."""
        stored = self._stored(request)
        if stored is None:
            return _error(404)
        density = self.studio.store.density(stored.id)
        names, bounds = density.column_names, density.spec.bounds
        column = last_of(fields, "column") if last_of(fields, "column") in names else names[0]
        wanted = last_of(fields, "points")
        points = int(wanted) if wanted.isdigit() and int(wanted) in POINTS else None
        conditions, split = slice_conditions(fields, names, column), last_of(fields, "split")
        at = number_of(fields, "at")
        groups: tuple[tuple[Condition, ...], ...] = (conditions,) if not conditions else ((), conditions)
        if split in names and split != column and at is not None:
            below, above = Condition(split, high=at, high_open=True), Condition(split, low=at)
            groups = ((below, *conditions), (above, *conditions))
        key = (stored.id, "curve", column, points, groups)
        reading, refused = None, slice_fault(fields, [name for name in names if name != column])
        if not refused:
            reading, refused = self._reading(key, lambda: curve(density, column, points, groups))
        others = [
            {"name": name, "bounds": bounds[j], **{end: last_of(fields, f"{end}.{name}") for end in ("low", "high")}}
            for j, name in enumerate(names)
            if name != column
        ]
        return self._show_reading(
            request, stored, "curve", reading=reading, refused=refused, column=column, points=points,
            all_points=POINTS, others=others, split=split, at=last_of(fields, "at"),
        )  # fmt: skip

    def _reading(self, key: Any, read: Callable[[], Reading]) -> tuple[Reading | None, str]:
        try:
            found: Reading = self.studio.memory.get(key, read)
        except (ValueError, TypeError) as error:
            words = str(error).removeprefix("question: ").removeprefix("given: ")
            return None, f"{words[0].upper()}{words[1:MOST_WORDS]}" if words else BECAUSE
        marked = tuple(Markup(one) for one in found.figures)
        return replace(found, figures=marked), ""

    def ask(self, request: Request, fields: Fields) -> Response:
        """Answer a question in words."""
        stored = self._stored(request)
        if stored is None:
            return _error(404)
        density, words = self.studio.store.density(stored.id), last_of(fields, "q")
        reading, refused = None, ""
        if words:
            reading, refused = self._reading((stored.id, "ask", words), lambda: in_words(density, words))
        return self._show_reading(request, stored, "ask", reading=reading, refused=refused, words=words)

    def compare(self, request: Request, fields: Fields) -> Response:
        """Compare with another release of the same columns."""
        stored = self._stored(request)
        if stored is None:
            return _error(404)
        density, store = self.studio.store.density(stored.id), self.studio.store
        alike = [
            one
            for one in self.studio.releases()
            if one.id != stored.id
            and one.question.names == stored.question.names
            and [(c.low, c.high, c.step) for c in one.question.columns]
            == [(c.low, c.high, c.step) for c in stored.question.columns]
        ]
        other = next((one for one in alike if one.id == last_of(fields, "with")), None)
        reading, refused = None, ""
        if other is not None:
            second, names = store.density(other.id), _told_apart(stored, other)
            same = other.dataset == stored.dataset
            key = (stored.id, "compare", other.id)
            reading, refused = self._reading(key, lambda: comparison(density, second, names, same_data=same))
        return self._show_reading(
            request, stored, "compare", reading=reading, refused=refused, alike=[(o, _label(o)) for o in alike],
            other=None if other is None else other.id,
        )  # fmt: skip

    def export(self, request: Request, _: Fields) -> Response:
        """Show what can be taken home."""
        stored = self._stored(request)
        return _error(404) if stored is None else self._show_reading(request, stored, "export", exports=EXPORTS)

    def download(self, request: Request, _: Fields) -> Response:
        """Return one export as a file."""
        stored, kind = self._stored(request), EXPORTS.get(request.path_params["kind"])
        if stored is None or kind is None:
            return _error(404)
        density, dataset = self.studio.store.density(stored.id), self.config.dataset(stored.dataset)
        key = (stored.id, "export", kind.title)
        content: bytes = self.studio.memory.get(key, lambda: kind.make(stored, dataset, density))
        headers = {
            "content-disposition": f'attachment; filename="{stored.id}{kind.suffix}.{kind.ending}"',
            "content-security-policy": "default-src 'none'; sandbox",
        }
        return Response(content, media_type=kind.media, headers=headers)


def _answer_words(item: Item, untold: int | None) -> str:
    """What became of a reservation, as far as that may be told."""
    if untold is not None and item.seq >= untold:
        return "on its way"
    return "given" if item.answered else "reserved, not answered"


def _last(fields: Fields) -> dict[str, str]:
    return {name: values[-1] for name, values in fields.items() if values and name in READING}


def _label(stored: StoredRelease) -> str:
    return f"{stored.title}, epsilon {stored.question.epsilon:g}, {stored.date[:16]}"


def _told_apart(first: StoredRelease, second: StoredRelease) -> tuple[str, str]:
    """Names of two releases for a legend, which has little room: what they differ in."""
    both = (first, second)
    epsilons = [one.question.epsilon for one in both]
    if first.title != second.title:
        return first.title, second.title
    if epsilons[0] != epsilons[1]:
        return f"ε = {epsilons[0]:g}", f"ε = {epsilons[1]:g}"
    return f"{first.date[:16]} UTC", f"{second.date[:16]} UTC"


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else {"\t": "tab", " ": "space"}.get(str(value), str(value))


def _first_epsilon(statement: Statement) -> float:
    """Where a slider begins: 1, or the last stop below what is left."""
    left = min(1.0, statement.remaining.pure)
    return max((stop for stop in SLIDER if stop <= left), default=SLIDER[0])


def _usual_unit(statement: Statement) -> str:
    """Column that says whose record a row is, where the ledger holds the data set to one."""
    return "" if statement.unit is None or statement.unit.name == "record" else statement.unit.name


def _usual_contributions(dataset: Dataset, statement: Statement) -> int:
    """Records of each unit that count, as the ledger has it, or else the administrator."""
    known = None if statement.unit is None else statement.unit.max_contributions
    return dataset.max_contributions if known is None else known


def _suggestion(dataset: Dataset, column: str) -> dict[str, list[str]]:
    """Fields of a form that say the range which a column begins with."""
    found = suggested_range(dataset, column)
    if isinstance(found, str):
        named = units.named(found)
        step = "" if named.step is None else f"{named.step:g}"
        ends = {f"low.{column}": [f"{named[0]:g}"], f"high.{column}": [f"{named[1]:g}"]}
        return {f"range.{column}": [found], **ends, f"step.{column}": [step]}
    if found is None:
        return {f"range.{column}": [""]}
    return {f"range.{column}": [""], f"low.{column}": [f"{found[0]:g}"], f"high.{column}": [f"{found[1]:g}"]}


def _accuracy_words(row: Any) -> dict[str, str]:
    """Expected errors of a column for people; how much of the median's is privacy."""
    total, privacy = row.median.total, row.median.privacy
    share = 0.0 if total <= 0 else min(1.0, (privacy / total) ** 2)
    return {
        "column": row.column,
        "mean": significant(row.mean.total, 2),
        "median": significant(total, 2),
        "tenth": f"{significant(100 * row.tenth.total, 2)}",
        "share": f"{100 * share:.0f}",
    }


def _promise(question: Question, neighbours: str) -> Guarantee:
    """The guarantee that a release of this question will have."""
    relation: Neighbours = "replace" if neighbours == "replace" else "add-remove"
    return Guarantee.certified_release(
        epsilon=question.epsilon,
        delta=0.0,
        neighbours=relation,
        unit=question.unit or "record",
        max_contributions=question.max_contributions,
        enforced=question.unit is not None,
        mechanism="discrete Laplace noise in two stages",
        proof="laplace-noise",
    )


def routes(studio: Studio) -> list[Route]:
    """Return all addresses, with who may use them."""
    views = Views(studio)

    def get(path: str, view: View, **options: Any) -> Route:
        return Route(path, views.endpoint(view, **options), methods=["GET"])

    def post(path: str, view: View, **options: Any) -> Route:
        return Route(path, views.endpoint(view, **options), methods=["POST"])

    release = "/releases/{release}"
    listed = [
        get("/enter", views.enter, public=True),
        post("/enter", views.enter, public=True),
        get("/static/{name}", views.static, public=True),
        post("/leave", views.leave),
        get("/", views.home),
        get("/ledger", views.ledger),
        get("/data/{dataset}", views.data),
        get("/data/{dataset}/outlook", views.outlook),
        get("/data/{dataset}/review", views.review),
        post("/data/{dataset}/release", views.release, role="custodian"),
        post("/data/{dataset}/propose", views.propose, role="analyst"),
        get("/progress/{work}", views.work),
        get("/progress/{work}/state", views.work_state),
        post("/progress/{work}/fetch", views.fetch, role="custodian"),
        get("/proposals/{proposal}", views.proposal),
        post("/proposals/{proposal}/decline", views.decline, role="custodian"),
        get(release, views.overview),
        get(f"{release}/curve", views.curve),
        get(f"{release}/ask", views.ask),
        get(f"{release}/modes", views.modes),
        get(f"{release}/clusters", views.clusters),
        get(f"{release}/branches", views.branches),
        get(f"{release}/compare", views.compare),
        get(f"{release}/export", views.export),
        get(f"{release}/export/{{kind}}", views.download),
    ]

    async def nowhere(_: Request) -> Response:
        return _error(404)

    return [*listed, Route("/{rest:path}", nowhere, methods=["GET", "POST"])]
