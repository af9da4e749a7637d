# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page of the lab, a marimo application: cells that show a `Session` and call its methods.

A cell runs again when something that it names has changed. `_panel` is the column of the controls; the cells
below it are the right column, in their order. `static/lab.css` lays them out by the names of their functions.
"""

import marimo

app = marimo.App(width="full", app_title="manifold_dl: the lab", css_file="static/lab.css")


@app.cell
def _imports():
    import os

    import marimo as mo

    from manifold_dl.lab import cards, widgets
    from manifold_dl.lab.address import from_query, to_query
    from manifold_dl.lab.code import code
    from manifold_dl.lab.figures import (
        atoms_figure,
        convergence_figure,
        search_figure,
        sphere_element,
        taylor_figure,
    )
    from manifold_dl.lab.figures.sphere import atom_paths
    from manifold_dl.lab.missions import MISSIONS
    from manifold_dl.lab.own_code import EXAMPLE
    from manifold_dl.lab.server import NO_CODE
    from manifold_dl.lab.session import Session

    return (
        EXAMPLE,
        MISSIONS,
        NO_CODE,
        Session,
        atom_paths,
        atoms_figure,
        cards,
        code,
        convergence_figure,
        from_query,
        mo,
        os,
        search_figure,
        sphere_element,
        taylor_figure,
        to_query,
        widgets,
    )


@app.cell
def _state(NO_CODE, Session, from_query, mo, os):
    from urllib.parse import urlencode

    session = Session(allow_code=not os.environ.get(NO_CODE))
    _settings, _messages = from_query("?" + urlencode(mo.query_params().to_dict(), doseq=True))
    get_initial, set_initial = mo.state((_settings, _messages))
    get_changes, set_changes = mo.state(0)  # counts what buttons did and how runs ended
    get_live, set_live = mo.state(False)  # whether the page is updated while a run computes
    # What few changes alter has a state of its own: a cell that draws it need not run at every step.
    get_own, set_own = mo.state(None)
    get_solved, set_solved = mo.state(())
    get_numbers, set_numbers = mo.state(())
    get_shown, set_shown = mo.state(None)  # the run whose steps can be chosen, and how many there are

    def changed():
        session.check_missions()
        for get, set_, now in (
            (get_live, set_live, session.is_active),
            (get_own, set_own, session.own.regularizer),
            (get_solved, set_solved, tuple(session.solved)),
            (get_numbers, set_numbers, tuple(session.numbers)),
            (get_shown, set_shown, session.shown),
        ):
            if get() != now:
                set_(now)
        set_changes(lambda count: count + 1)

    return (
        changed,
        get_changes,
        get_initial,
        get_live,
        get_numbers,
        get_own,
        get_shown,
        get_solved,
        session,
        set_initial,
        set_live,
    )


@app.cell
def _controls(get_initial, session, widgets):
    _settings, address_messages = get_initial()
    controls = widgets.controls(_settings, session.own)
    return address_messages, controls


@app.cell
def _chosen(controls, get_own, session, widgets):
    get_own()  # the regularizer of one's own may be right by now, or wrong
    settings, refusal = widgets.read(controls.value, session)
    return refusal, settings


@app.cell
def _head(mo, cards):
    mo.Html(cards.title())


@app.cell
def _panel(address_messages, controls, mo, refusal, session, settings, widgets):
    mo.Html(widgets.panel(controls, settings, session, refusal, address_messages))


@app.cell
def _buttons(changed, mo, session, set_live):
    def _do(action):
        def act(_value):
            if session.chosen is None and action != session.stop:
                return
            if action == session.stop:
                session.stop()
            else:
                action(session.chosen)
            if session.current is not None:  # short runs and single steps are shown at once, long ones stream
                session.current.wait(0.15, for_pause=True)
            changed()

        return act

    run_button = mo.ui.button(label="Run", kind="success", on_change=_do(session.run), tooltip="to the end")
    step_button = mo.ui.button(label="Step ▸", on_change=_do(session.step), tooltip="one accepted iterate")
    stop_button = mo.ui.button(
        label="Stop", kind="danger", on_change=_do(session.stop), tooltip="keep what there is"
    )
    measure = mo.ui.radio(["iterations", "evaluations", "seconds"], value="iterations", inline=True)
    return measure, run_button, step_button, stop_button


@app.cell
def _ticker(get_live, mo):
    # This element updates the page every 0.3 s while a run computes; otherwise there is none.
    ticker = mo.ui.refresh(options=["0.3s"], default_interval="0.3s") if get_live() else None
    mo.Html(f"<div>{ticker}</div>") if ticker is not None else None
    return (ticker,)


@app.cell
def _bar(
    changed, get_changes, get_live, mo, cards, refusal, run_button, session, step_button, stop_button, ticker
):
    get_changes(), ticker is not None and ticker.value
    _run = session.current
    if get_live() and not session.is_active:  # it has ended since the last news
        changed()
    _message = f"Not possible: {refusal}" if refusal else ""
    mo.Html(cards.bar([run_button, step_button, stop_button], cards.status(_run, _message)))


@app.cell
def _chooser(get_shown, mo):
    _number, _steps = get_shown() or (None, 0)
    step = None
    if _steps > 1:
        step = mo.ui.slider(1, _steps, value=_steps, show_value=True, full_width=True)
    return (step,)


@app.cell
def _delete(changed, get_numbers, mo, session):

    def _remove(number):
        def act(_value):
            session.delete(number)
            changed()

        return act

    delete_buttons = [
        mo.ui.button(label="✕", tooltip="delete this run", on_change=_remove(number))
        for number in get_numbers()
    ]
    return (delete_buttons,)


@app.cell
def _views(convergence_figure, delete_buttons, get_changes, measure, mo, cards, session, step, ticker):
    get_changes(), ticker is not None and ticker.value
    index = step.value if step is not None and not session.is_active else -1
    _chosen = index if index > 0 else None
    _figure = convergence_figure(session.runs, measure.value, session.numbers, _chosen)
    _legend = cards.legend(session.names(), session.numbers, delete_buttons)
    _numbers = session.measure(index)
    _truth = session.current is not None and session.current.job.data.truth is not None
    mo.Html(cards.objective_card(_figure, measure, _legend, cards.numbers_table(_numbers, _truth)))
    return (index,)


@app.cell
def _details(
    atom_paths, atoms_figure, get_changes, index, mo, cards, search_figure, session, settings,
    sphere_element, step, ticker, widgets,
):  # fmt: skip
    get_changes(), ticker is not None and ticker.value
    _run = session.current
    _last = len(_run.iterates) - 1 if _run else -1
    _search = session.search(index if index > 0 else _last)
    _left = cards.search_card(search_figure(*_search) if _search else "", step, _last, session.is_active)
    _dictionary = widgets.dictionary_shown(session, settings, index)
    if _dictionary is None:
        _right = cards.atoms_card("", "")
    elif len(_dictionary) == 3:
        _paths = (
            atom_paths(_run, index if index > 0 else None) if _run else [atom[None] for atom in _dictionary.T]
        )
        _truth = _run.job.data.truth if _run else None
        _right = cards.atoms_card(
            sphere_element(_paths, _truth), cards.atom_numbers(_dictionary), sphere=True
        )
    else:
        _patch = _run.job.data.patch if _run else widgets.patch_of(settings)
        _right = cards.atoms_card(atoms_figure(_dictionary, _patch), "", atoms=_dictionary.shape[1])
    mo.Html(cards.two(_left, _right, index if index > 0 else _last))


@app.cell
def _editor(EXAMPLE, mo, session):
    editor = mo.ui.code_editor(
        value=EXAMPLE, language="python", min_height=150, debounce=500, show_copy_button=False,
        disabled=not session.allow_code,
    )  # fmt: skip
    return (editor,)


@app.cell
def _own(changed, editor, mo, cards, session, settings, taylor_figure):
    if session.allow_code:
        _before = session.own.regularizer, len(session.solved)
        _typed = session.type(editor.value, settings)
        if (session.own.regularizer, len(session.solved)) != _before:
            changed()
        _figure = taylor_figure(_typed.taylor) if _typed.taylor is not None else ""
        _verdict = cards.verdict(_typed.verdict, _typed.is_right)
        _output = cards.own_card(editor, _verdict, _figure, _typed.printed)
    else:
        _verdict = cards.verdict("Opened with --no-code: no text is executed.", False)
        _output = cards.own_card(None, _verdict, "")
    own_text = session.text
    mo.Html(_output)
    return (own_text,)


@app.cell
def _code(cards, code, mo, own_text, refusal, session, settings, to_query):
    _text = "" if refusal else code(settings, session.upload, own_text)
    mo.Html(cards.code_card(_text, to_query(settings)))


@app.cell
def _setups(MISSIONS, mo, set_initial):
    setup_buttons = {
        _mission.key: mo.ui.button(
            label="Set it up",
            on_change=lambda _value, settings=_mission.settings: set_initial((settings, {})),
        )
        for _mission in MISSIONS
    }
    return (setup_buttons,)


@app.cell
def _missions(MISSIONS, get_solved, mo, cards, session, setup_buttons):
    get_solved()
    mo.Html(cards.missions_card(MISSIONS, session.solved, setup_buttons, session.allow_code))


if __name__ == "__main__":
    app.run()
