import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTab, SCREEN_PATHS, seriousFindings, startBrowser, type Tab, visit } from '../support/browser.js';
import { type ClaimedDemo, startClaimedDemo } from '../support/claimedDemo.js';

/** Widths of a desk, a desk at 200 % zoom, a tablet and a phone. */
const WIDTHS = [1440, 720, 768, 320];

let demo: ClaimedDemo;
let browser: Browser;
const tabs: Tab[] = [];

beforeAll(async () => {
  [demo, browser] = await Promise.all([startClaimedDemo(), startBrowser()]);
  await addLongWord();
});

afterAll(async () => {
  await browser.close();
  await demo.close();
});

/** A call whose alert has a word that is longer than a phone is wide. */
async function addLongWord(): Promise<void> {
  const event = {
    request_id: 'a call of a long word',
    timestamp: new Date().toISOString(),
    provider: 'openai',
    model: `a_model_${'with_a_long_name_'.repeat(6)}`,
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const answer = await fetch(`${demo.api.baseUrl}/api/v1/ingest/events`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${demo.organization.ingestKey}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ events: [event] }),
  });
  expect(await answer.json()).toMatchObject({ accepted: 1 });
}

/** One tab for all screens of an organization: the files of the dashboard load once. */
function tabOf(key: () => Promise<string>): () => Promise<Tab> {
  let tab: Promise<Tab> | undefined;
  return () => {
    tab ??= key()
      .then((one) => openTab(browser, demo.api.baseUrl, one))
      .then((one) => {
        tabs.push(one);
        return one;
      });
    return tab;
  };
}

async function look(tab: Tab, path: string): Promise<void> {
  const { page } = tab;
  await page.setViewportSize({ width: 1440, height: 900 });
  await visit(page, path);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      // Colours are all that the dark theme changes.
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined;
      expect(await seriousFindings(page, rules), `${path} ${colorScheme} ${width}`).toEqual([]);
      expect(await overflow(page), `${path} scrolls sideways at ${width}`).toBe(0);
    }
  }
  expect(tab.faults.splice(0), path).toEqual([]);
}

const overflow = (page: Page) =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

const full = tabOf(async () => demo.organization.adminKey);
const empty = tabOf(async () => (await demo.api.addOrganization()).adminKey);

it('the list of screens is read', () => {
  expect(SCREEN_PATHS).toContain('/');
  expect(SCREEN_PATHS.length).toBeGreaterThan(30);
});

describe.each([
  ['full', full],
  ['empty', empty],
])('in an organization that is %s', (_state, tab) => {
  it.each(SCREEN_PATHS)(
    '%s has no fault and no serious finding of axe, in light and dark, from desk to phone and at twice the size',
    async (path) => look(await tab(), path),
  );
});

it.each(['findings', 'claims', 'events', 'webhook-endpoints'] as const)(
  'the page of one of the %s has no fault and no serious finding of axe',
  async (list) => look(await full(), await onePage(list)),
);

async function onePage(list: 'findings' | 'claims' | 'events' | 'webhook-endpoints'): Promise<string> {
  const { api, organization } = demo;
  const read = async (path: string) => (await api.get(`/api/v1/${path}`, organization.adminKey)).body;
  const send = async (path: string, body: unknown) =>
    (await api.post(`/api/v1/${path}`, body, organization.adminKey)).body;
  if (list === 'findings') return `/findings/${(await read('financial/findings?limit=1')).findings[0].id}`;
  if (list === 'events') return `/events/${(await read('events?limit=1')).events[0].id}`;
  if (list === 'claims') {
    const dispute = demo.disputes.find((one) => one.claim_id === null && one.status === 'open');
    return `/claims/${(await send('claims', { dispute_ids: [dispute.id] })).id}`;
  }
  const hook = { url: 'https://hooks.example.com/x', description: 'x', event_types: ['alert.created'] };
  return `/settings/webhooks/${(await send('webhook-endpoints', hook)).id}`;
}
