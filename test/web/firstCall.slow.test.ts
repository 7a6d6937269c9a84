import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { foldAll } from '../db/support/compareTotals.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, startBrowser, visit } from '../support/browser.js';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('makes an ingest key by keyboard, notices the first call within two seconds and links to it', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/first-call?way=fetch');
  await page.getByLabel('Name of the key').focus();
  await page.keyboard.press('Enter');
  const key = await page.getByRole('region', { name: /^Ingest key/ }).innerText();
  const example = await page.getByRole('region', { name: 'JavaScript on a server' }).innerText();
  expect(example).toContain(`${api.baseUrl}/api/v1/ingest/events`);
  expect(example).toContain(key);
  await page.getByText('Waiting for a call').waitFor();

  // The text on the screen is what a user would run.
  await new Function(`return (async () => { ${example} })()`)();
  await page.getByText('Your call has arrived').waitFor({ timeout: 2_000 });
  const { events } = (await api.get('/api/v1/events?limit=1')).body;
  expect(events[0].model).toBe('gpt-4o-mini');
  expect(await page.getByRole('link', { name: 'Open the call' }).getAttribute('href')).toBe(
    `/events/${events[0].id}`,
  );

  await visit(page, '/ingest-health');
  await page.getByRole('table', { name: 'Sources of calls' }).waitFor();

  // A line needs two days; one is a point.
  await foldAll(api.database.superuser, api.orgDb);
  await visit(page, '/');
  const chart = page.getByRole('figure', { name: 'Billed and observed cost by day' });
  await chart.locator('circle').waitFor();
  expect(await chart.locator('circle').count()).toBe(1);
  expect(faults).toEqual([]);
  await close();
});

it('offers an auditor no key', async () => {
  const auditor = await api.addKey(api.orgId, 'auditor');
  const { page, faults, close } = await openTab(browser, api.baseUrl, auditor);
  await visit(page, '/first-call');
  await page.getByText('Your role cannot make keys').waitFor();
  expect(await page.getByRole('button', { name: 'Make an ingest key' }).count()).toBe(0);
  expect(faults).toEqual([]);
  await close();
});
