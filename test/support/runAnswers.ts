import { expect } from 'vitest';
import type { TestApi, TestOrganization } from './api.js';
import { until } from './engine.js';

const FINAL = ['succeeded', 'partial', 'failed', 'cancelled'];

/** A run's answer as the bytes that a client gets. */
async function readAnswer(api: TestApi, statusUrl: string, { adminKey }: TestOrganization): Promise<string> {
  const response = await fetch(`${api.baseUrl}${statusUrl}`, {
    headers: { authorization: `Bearer ${adminKey}` },
  });
  expect(response.status).toBe(200);
  return response.text();
}

/** A final answer of a run. */
export interface FinalAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
  body: any;
  /** Waits for `settle` and expects the same bytes after it. */
  expectUnchanged(settle: () => Promise<unknown>): Promise<void>;
}

/** Polls a run until its status is final, as a client does, and checks the common fields of final answers. */
export async function pollToFinal(
  api: TestApi,
  statusUrl: string,
  org: TestOrganization = api,
): Promise<FinalAnswer> {
  const text = await until(
    `the end of ${statusUrl}`,
    () => readAnswer(api, statusUrl, org),
    (answer) => FINAL.includes(JSON.parse(answer).status),
    180_000,
  );
  const body = JSON.parse(text);
  expect(body.progress.stage).toBe(body.status);
  const isComplete = body.status === 'succeeded' || body.status === 'partial';
  if (isComplete) expect(body.progress.percent).toBe(100);
  else expect(body.progress.percent).toBeLessThan(100);
  expect(body.finished_at).not.toBeNull();
  return {
    body,
    async expectUnchanged(settle) {
      await settle();
      expect(await readAnswer(api, statusUrl, org)).toBe(text);
    },
  };
}

/** A door that work waits at until it is opened. */
export function aGate(): {
  passed: Promise<void>;
  open: () => void;
  reached: Promise<void>;
  pass: () => Promise<void>;
} {
  let open: () => void = () => undefined;
  let reach: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return {
    passed,
    open,
    reached,
    pass: () => {
      reach();
      return passed;
    },
  };
}
