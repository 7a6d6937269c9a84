/**
 * Judges a world once as it is and once for each rule that is left out or changed. The engine notes to which series a rule
 * makes a difference; only these are explained again, so that a rule costs as much as it matters.
 */
import type { SuspectKey } from '../../../../domain/billing/providerKeys.js';
import type { Provider } from '../../../../domain/providers.js';
import type { Finding, SeriesExplanation } from '../../../../domain/reconciliation/engine/index.js';
import { byText, type SeriesDayEvidence } from '../../../../domain/reconciliation/evidence/evidenceText.js';
import type { ChargePrices } from '../../../../domain/reconciliation/matching/charges.js';
import { matchDay } from '../../../../domain/reconciliation/matching/matchDay.js';
import { divideBySeries } from '../../../../domain/reconciliation/reconcileDays.js';
import { weightsFor } from '../../../../domain/reconciliation/weights/learn.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import type { GeneratedVisibility } from '../../../generators/world.js';
import { pricesOf } from '../books.js';
import type { WorldFacts } from '../judge.js';
import type { PreparedWorld } from '../preparedWorlds.js';
import { addWorld, emptyTally, type Tally } from '../tally.js';
import { withEdits } from './hooks.js';
import { explanationNames, type Rule, SWITCHES, type Switches, switches } from './rules.js';

type Engine = typeof import('../../../../domain/reconciliation/engine/index.js');
type Hypothesis = Engine['HYPOTHESES'][number];

/** A world whose days are already compared: what no rule of the engine changes. */
export interface MatchedWorld {
  world: WorldFacts;
  visibility: GeneratedVisibility;
  providers: MatchedProvider[];
}

interface MatchedProvider {
  provider: Provider;
  suspects: SuspectKey[];
  evidence: SeriesDayEvidence[];
}

/** The result without a rule, and how many of the world's series were explained again for it. */
export interface WithoutRule {
  tally: Tally;
  again: number;
}

export interface MeasuredWorld {
  usual: Tally;
  series: number;
  /** In the order of the rules. */
  without: WithoutRule[];
}

export function matchWorld({ world, inputs }: PreparedWorld, visibility: GeneratedVisibility): MatchedWorld {
  const { agreed } = pricesOf(world);
  const providers = inputs.map(({ provider, suspects, days }) => ({
    provider,
    suspects,
    evidence: [...days]
      .sort((a, b) => byText(a.day, b.day))
      .flatMap((day) => matchDay(agreed, provider, day, DEFAULT_WEIGHTS.link).evidence),
  }));
  return { world, visibility, providers };
}

/** A series with its explanation by the whole engine. */
interface ExplainedSeries {
  provider: Provider;
  accountId: string;
  model: string;
  days: SeriesDayEvidence[];
  usual: SeriesExplanation;
  /** Names of the rules that make a difference to it. */
  noted: ReadonlySet<string>;
}

interface Account {
  provider: Provider;
  accountId: string;
  suspects: SuspectKey[];
  series: ExplainedSeries[];
  usual: Finding[];
}

/** Measures worlds one after another; the hooks of this folder have to be registered (Node’s `register`). */
export class Ablation {
  private readonly switches: Switches = { without: undefined, note: undefined };
  private loaded: Engine | undefined;

  constructor(private readonly rules: readonly Rule[]) {}

  async measure(matched: MatchedWorld): Promise<MeasuredWorld> {
    const prices = pricesOf(matched.world);
    const engine = await this.engine();
    const accounts = accountsOf(matched, prices, engine, this.switches);
    const series = accounts.flatMap((one) => one.series);
    const usual = tallyOf(
      matched,
      prices,
      accounts.flatMap((one) => one.usual),
      series.map((one) => one.usual),
    );
    const without = this.rules.map((rule): WithoutRule => {
      const changed = new Set(series.filter((one) => isChangedBy(rule, one)));
      if (changed.size === 0 && rule.kind !== 'account') return { tally: usual, again: 0 };
      const tally = this.withoutRule(rule, engine, (library) => {
        const explain = (one: ExplainedSeries) =>
          changed.has(one) ? explained(one, prices, engine, library) : one.usual;
        const judged = accounts.map((account) => {
          const explanations = account.series.map(explain);
          const isSame = rule.kind !== 'account' && !account.series.some((one) => changed.has(one));
          const findings = isSame ? account.usual : findingsOf(account, explanations, prices, engine);
          return { explanations, findings };
        });
        return tallyOf(
          matched,
          prices,
          judged.flatMap((one) => one.findings),
          judged.flatMap((one) => one.explanations),
        );
      });
      return { tally, again: changed.size };
    });
    return { usual, series: series.length, without };
  }

  private async engine(): Promise<Engine> {
    Object.assign(globalThis, { [SWITCHES]: this.switches });
    const url = new URL('../../../../domain/reconciliation/engine/index.js', import.meta.url);
    this.loaded ??= (await import(withEdits(url, switches()).href)) as Engine;
    return this.loaded;
  }

  /** Runs with the rule left out, or the number changed. */
  private withoutRule<T>(
    { kind, name, quarters }: Rule,
    engine: Engine,
    run: (library: readonly Hypothesis[]) => T,
  ): T {
    if (kind === 'explanation') {
      const at = explanationNames().indexOf(name);
      return run(engine.HYPOTHESES.filter((_, place) => place !== at));
    }
    const back = quarters === undefined ? undefined : this.switches.setNumber?.(name, quarters);
    if (back === undefined) this.switches.without = name;
    try {
      return run(engine.HYPOTHESES);
    } finally {
      back?.();
      this.switches.without = undefined;
    }
  }
}

function tallyOf(
  { world, visibility }: MatchedWorld,
  prices: ChargePrices,
  findings: Finding[],
  explanations: SeriesExplanation[],
): Tally {
  const tally = emptyTally();
  addWorld(tally, world, { prices, inputs: [], findings, explanations, buckets: [], runMs: 0 }, visibility);
  return tally;
}

const isChangedBy = ({ name, again }: Rule, { noted }: ExplainedSeries): boolean =>
  again === 'all' || (again === 'noted' && noted.has(name));

function accountsOf(
  { providers }: MatchedWorld,
  prices: ChargePrices,
  engine: Engine,
  switches: Switches,
): Account[] {
  const inProgram = explanationNames();
  const names = new Map<unknown, string>(engine.HYPOTHESES.map((one, at) => [one, inProgram[at] ?? '']));
  let noted = new Set<string>();
  switches.note = (what) => noted.add(typeof what === 'string' ? what : (names.get(what) ?? ''));
  const accounts = new Map<string, Account>();
  for (const { provider, suspects, evidence } of providers)
    for (const divided of divideBySeries(evidence)) {
      const { accountId } = divided;
      noted = new Set();
      const bare = { provider, ...divided };
      const series = { ...bare, usual: explained(bare, prices, engine), noted };
      const at = JSON.stringify([provider, accountId]);
      const known = accounts.get(at);
      if (known) known.series.push(series);
      else {
        const own = suspects.filter((one) => one.providerAccountId === accountId);
        accounts.set(at, { provider, accountId, suspects: own, series: [series], usual: [] });
      }
    }
  for (const account of accounts.values())
    account.usual = findingsOf(
      account,
      account.series.map((one) => one.usual),
      prices,
      engine,
    );
  switches.note = undefined;
  return [...accounts.values()];
}

function explained(
  { provider, accountId, model, days }: Omit<ExplainedSeries, 'usual' | 'noted'>,
  prices: ChargePrices,
  engine: Engine,
  hypotheses: readonly Hypothesis[] = engine.HYPOTHESES,
): SeriesExplanation {
  const weights = weightsFor(DEFAULT_WEIGHTS, provider);
  return engine.explainSeries({ provider, accountId, model, days, prices, weights, hypotheses });
}

function findingsOf(
  { provider, accountId, suspects }: Account,
  series: SeriesExplanation[],
  prices: ChargePrices,
  engine: Engine,
): Finding[] {
  const weights = DEFAULT_WEIGHTS;
  return engine.explainAccount({ provider, accountId, series, suspectKeys: suspects, prices, weights });
}
