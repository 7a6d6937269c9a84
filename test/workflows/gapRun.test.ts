import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../support/api.js';
import { pollToEnd, runGaps } from '../support/bills.js';
import { type TestEngine, until } from '../support/engine.js';
import { EXPLORER, GapRunPlace, UNITS } from '../support/gapRunPlace.js';

let place: GapRunPlace;
let api: TestApi;
let engine: TestEngine;

beforeAll(async () => {
  place = await GapRunPlace.open();
  ({ api, engine } = place);
});
afterAll(() => place?.close());

describe('a run', () => {
  it('shows nothing until all of it is matched, then all at once', async () => {
    const organization = await place.aBilledOrganization();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal === UNITS - 1) await gate;
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await place.start(organization);
    await until(
      'all units but one',
      () => place.doneUnits(organization),
      (count) => count === UNITS - 1,
    );
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
    expect((await api.get(run.status_url, organization.adminKey)).body.progress).toMatchObject({
      stage: 'matching',
      done: UNITS - 1,
      total: UNITS,
      percent: 93,
    });
    release();
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect((await api.get(EXPLORER, organization.adminKey)).body).toMatchObject({ total: done.result.total });
    await worker.stop();
  });

  it('over fewer days or one provider replaces its own days that changed and hides nothing', async () => {
    const organization = await place.aBilledOrganization();
    const worker = await engine.startWorker();
    const wide = await runGaps(api, '?period=90d', undefined, organization.adminKey);
    const agreed = {
      provider: 'openai',
      model: '*',
      discount_percent: 10,
      effective_from: place.bills.days[0],
    };
    const { status } = await api.post(
      '/api/v1/pricing/contract-rates',
      { ...agreed, source: { document: 'Agreement' } },
      organization.adminKey,
    );
    expect(status).toBe(201);
    const narrow = await runGaps(api, '?period=30d&provider=openai', undefined, organization.adminKey);
    const { body } = await api.get(`${EXPLORER}?period=90d`, organization.adminKey);
    expect(body.total).toBe(wide.result.total);
    const runs = new Set(
      body.gaps.map(({ provider, run_id }: { provider: string; run_id: string }) => `${provider} ${run_id}`),
    );
    expect(runs).toEqual(new Set([`openai ${narrow.run_id}`, `anthropic ${wide.run_id}`]));
    await worker.stop();
  });

  it('that finds nothing changed compares nothing, and its result is that of all its days', async () => {
    const organization = await place.aBilledOrganization();
    const worker = await engine.startWorker();
    const first = await runGaps(api, '?period=30d', undefined, organization.adminKey);
    const again = await runGaps(api, '?period=30d', undefined, organization.adminKey);
    expect(again).toMatchObject({ status: 'succeeded', progress: { done: 0, total: 0, percent: 100 } });
    expect(first.result).toMatchObject({ provider_days: UNITS, unchanged_days: 0 });
    expect(again.result).toEqual({ ...first.result, unchanged_days: UNITS });
    await worker.stop();
  });

  it('that is cancelled at work stops, and publishes nothing', async () => {
    const organization = await place.aBilledOrganization();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal >= UNITS / 2) await gate;
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await place.start(organization);
    await until(
      'a first unit',
      () => place.doneUnits(organization),
      (count) => count > 0,
    );
    const asked = await api.post(`${run.status_url}/cancel`, {}, organization.adminKey);
    expect([asked.status, asked.body.progress.stage]).toEqual([202, 'cancelling']);
    expect(await pollToEnd(api, run.status_url, undefined, organization.adminKey)).toMatchObject({
      status: 'cancelled',
      result: null,
    });
    expect(await place.doneUnits(organization)).toBeLessThan(UNITS);
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
    release();
    await worker.stop();
    expect((await api.get(EXPLORER, organization.adminKey)).body.total).toBe(0);
  });

  it('of which a day cannot be matched is partial: the other days are published, the day is named', async () => {
    const organization = await place.aBilledOrganization();
    const worker = await engine.startWorker((activities) => ({
      matchProviderDay: async (unit) => {
        if (unit.ordinal === 3) throw ApplicationFailure.nonRetryable('this day is broken', 'not_found');
        await activities.matchProviderDay(unit);
      },
    }));
    const run = await place.start(organization);
    const done = await pollToEnd(api, run.status_url, undefined, organization.adminKey);
    expect(done).toMatchObject({
      status: 'partial',
      error: { code: 'units_failed' },
      result: {
        provider_days: UNITS,
        failed_units: [{ provider: 'anthropic', day: place.bills.days[3], message: 'this day is broken' }],
      },
    });
    const { body } = await api.get(EXPLORER, organization.adminKey);
    expect(
      new Set(
        body.gaps.map(({ provider, bucket }: { provider: string; bucket: string }) => provider + bucket),
      ).size,
    ).toBe(UNITS - 1);
    await worker.stop();
  });
});
