/** The findings that the reconciliation engine must derive from the demo's planted faults, however the data arrived. */
import { expect, it } from 'vitest';
import { decimalFromPico } from '../../domain/money.js';
import type { PlantedFinding } from '../../lab/demo/findings.js';
import { byText, exact, fieldsAsIn } from './demoReads.js';
import type { FoundDemo } from './plantedFaults.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const FINDINGS = '/api/v1/financial/findings';
const PICO_PER_CENT = 10_000_000_000n;
/** Whether the grade is high enough to act on. */
const isSure = ({ confidence }: Json) => confidence === 'HIGH' || confidence === 'MEDIUM';
const sum = (values: readonly bigint[]) => values.reduce((total, value) => total + value, 0n);

/** The checks of the demo's findings; `place` is called when they run. */
export function itExplainsWhatWasPlanted(place: () => FoundDemo): void {
  const listed = async (query = ''): Promise<Json[]> => {
    const { body } = await place().api.get(`${FINDINGS}?limit=1000${query}`);
    expect(body.has_more).toBe(false);
    return body.findings;
  };

  it('explains every planted fault by its name, with its days, dollars and grade, and nothing else above LOW', async () => {
    const { demo } = place();
    const planted = demo.answerKey.findings.map((finding) => ({
      kind: finding.kind,
      provider: finding.provider,
      model: finding.model,
      period_start: demo.calendar.dayText(finding.days.first),
      period_end: demo.calendar.dayText(finding.days.last),
      impact_usd_exact: decimalFromPico(finding.impactPico),
      claimable: finding.claimable,
      confidence: finding.grade,
      direction: 'overcharge',
    }));
    const told = (await listed()).filter(({ kind }) => kind !== 'unobserved_usage');
    const found = told.map((finding) => fieldsAsIn(planted[0], finding));
    expect(found.filter(isSure).sort(byText)).toEqual(planted.filter(isSure).sort(byText));
    expect(found).toEqual(expect.arrayContaining(planted));
  });

  it('gives each finding its days, whose parts add up, and whose rates are the planted ones', async () => {
    const { api, demo } = place();
    const { gaps } = demo.answerKey;
    for (const { id, model } of (await listed('&blame=provider')).filter(isSure)) {
      const { body } = await api.get(`${FINDINGS}/${id}`);
      for (const day of body.days) {
        const planted = gaps.find(
          (gap) => gap.model === model && demo.calendar.dayText(gap.offset) === day.day,
        );
        expect([day.day, model, exact(day.rate_usd_exact), exact(day.volume_usd_exact)]).toEqual([
          day.day,
          model,
          planted?.ratePico,
          planted?.volumePico,
        ]);
        expect(day.own_pricing_usd_exact).toBe('0');
      }
    }
  });

  it('asks back what the provider took too much and nothing of what is its own, to the cent', async () => {
    const { api, demo } = place();
    const { findings, gaps } = demo.answerKey;
    const ofGrades = (...grades: PlantedFinding['grade'][]) => {
      const faults = findings
        .filter((one) => one.claimable && grades.includes(one.grade))
        .map(({ fault }): string => fault);
      const months = new Map<string, bigint>();
      for (const gap of gaps.filter(({ kind }) => faults.includes(kind))) {
        const month = `${gap.provider} ${demo.calendar.dayText(gap.offset).slice(0, 7)}`;
        months.set(month, (months.get(month) ?? 0n) + gap.gapPico);
      }
      return Number(sum([...months.values()].map((month) => month / PICO_PER_CENT))) / 100;
    };
    const { body } = await api.get('/api/v1/financial/summary');
    expect(body.recoverable_confirmed_usd).toBe(ofGrades('HIGH'));
    expect(body.recoverable_review_usd).toBe(ofGrades('MEDIUM', 'LOW'));
    expect([body.unexplained_critical_usd, body.unexplained_review_usd]).toEqual([0, 0]);
  });

  it('reports each model whose calls were missing for hours, without a finding against the provider', async () => {
    const { demo } = place();
    const missing = demo.answerKey.gaps.filter(({ kind }) => kind === 'missing_window');
    const [day] = missing.map(({ offset }) => demo.calendar.dayText(offset));
    const found = await listed(`&provider=openai&from=${day}&to=${day}`);
    expect(await listed('&kind=unobserved_usage')).toEqual(found);
    expect(found.map(({ model }) => model).sort()).toEqual(missing.map(({ model }) => model).sort());
    for (const finding of found) {
      const planted = missing.find(({ model }) => model === finding.model);
      expect([finding.kind, finding.claimable, finding.recoverable_usd]).toEqual([
        'unobserved_usage',
        false,
        0,
      ]);
      // A line that includes batch calls is divided as the bill divides it, whichever of them were missing.
      const apart = exact(finding.impact_usd_exact) - (planted?.gapPico ?? 0n);
      expect((apart < 0n ? -apart : apart) * 50n <= (planted?.gapPico ?? 0n)).toBe(true);
    }
  });

  it('asks people about the provider’s mistakes alone', async () => {
    const { body } = await place().api.get('/api/v1/financial/review-queue?limit=1000');
    const found = body.items.filter(({ kind }: Json) => kind !== 'policy').map((item: Json) => item.kind);
    const planted = place().demo.answerKey.findings.filter(({ claimable }) => claimable);
    expect(found.sort()).toEqual(planted.map(({ kind }) => kind).sort());
  });
}
