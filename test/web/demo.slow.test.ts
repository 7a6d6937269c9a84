import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { recordDemoEnd, recordDemoStage } from '../../db/installation/demoRuns.js';
import { findUuid } from '../../domain/ids.js';
import { makeDemo } from '../api/support/operations/demo.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, seriousFindings, startBrowser, visit } from '../support/browser.js';

const loads: string[] = [];
let removals = 0;
let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  const demo = {
    load: ({ id }: { id: string }) => void loads.push(id),
    remove: async () => void removals++,
  };
  [api, browser] = await Promise.all([startTestApi({ demo }), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('loads the demo from the empty overview, follows it on other screens, opens it, leads back and removes it', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/');
  await page.getByRole('button', { name: 'Load the demo' }).click();
  await page.getByRole('progressbar', { name: 'Loading the demo' }).waitFor();
  await expect.poll(() => loads.length).toBe(1);
  const [id = ''] = loads;
  await recordDemoStage(api.orgDb, id, '44,654 calls');
  await page.getByText('Loading the demo: 44,654 calls').waitFor();

  await page.getByRole('link', { name: 'Policies' }).click();
  await page.getByRole('link', { name: /^Settings.*a run is under way/ }).waitFor();
  await page.reload();
  await page.getByRole('link', { name: /^Settings.*a run is under way/ }).waitFor();
  await makeDemo({ api });
  await recordDemoEnd(api.orgDb, id, null);
  await page.getByText('Loading the demo has ended: succeeded.').waitFor({ timeout: 15_000 });
  await page.getByRole('link', { name: 'Open the settings' }).click();

  await page.getByRole('button', { name: 'Open the demo' }).click();
  const bar = page.getByRole('region', { name: 'Demo' });
  await bar.getByText('is an invented company').waitFor();
  expect(await seriousFindings(page)).toEqual([]);
  await bar.getByRole('button', { name: 'Back to my organization' }).click();
  await page.getByLabel('API key').fill(api.adminKey);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(await bar.count()).toBe(0);

  await visit(page, '/settings');
  await page.getByRole('button', { name: 'Remove the demo' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the demo' }).click();
  await page.getByText('The demo is removed.').waitFor();
  expect(removals).toBe(1);
  // The sign-in page asks who is signed in and gets 401.
  expect(faults.filter((fault) => !fault.includes('401'))).toEqual([]);
  await close();
});

it('shows why a load of the demo failed, and loads it again', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/settings');
  const before = loads.length;
  const { run_id: id } = (await api.post('/api/v1/demo', {})).body;
  await expect.poll(() => loads.length).toBe(before + 1);
  await recordDemoEnd(api.orgDb, findUuid('run', id) ?? '', 'The workflow engine does not serve.');
  await visit(page, '/settings');
  await page.getByText('The demo was not loaded: The workflow engine does not serve.').waitFor();
  await page.getByRole('button', { name: 'Load the demo' }).click();
  await page.getByRole('progressbar', { name: 'Loading the demo' }).waitFor();
  expect(loads).toHaveLength(before + 2);
  await close();
});

it('asks before a link changes who is signed in', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await page.goto('/#/welcome/someone-elses-link');
  await page.getByRole('button', { name: /^Stay in/ }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  expect(page.url()).not.toContain('welcome');
  await close();
});
