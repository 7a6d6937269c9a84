import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { openTab, startBrowser, visit } from '../support/browser.js';
import { proposePrice } from '../support/proposals.js';

const PROPOSALS = '/api/v1/pricing/proposals';

let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  [api, browser] = await Promise.all([startTestApi(), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
});

it('shows how to switch price feeds on while they are off', async () => {
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/prices/proposals');
  await page.getByText('PRICE_FEEDS=litellm,models.dev').waitFor();
  expect(faults).toEqual([]);
  await close();
});

it('applies a proposed price after asking, and dismisses another with its reason', async () => {
  await proposePrice(api.orgDb, 'gpt-4o-mini');
  await proposePrice(api.orgDb, 'gpt-4o');
  const { page, faults, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/prices/proposals');
  await page.getByRole('link', { name: 'Proposals (2)' }).waitFor();
  await page.getByText('($4.25)').first().waitFor();
  await page.getByRole('button', { name: 'Apply the price of gpt-4o-mini' }).click();
  expect((await api.get('/api/v1/pricing/overrides')).body.overrides).toEqual([]);
  await page.getByRole('button', { name: 'Apply it' }).click();
  await page.getByRole('link', { name: 'Proposals (1)' }).waitFor();
  await page.getByRole('button', { name: 'Dismiss the price of gpt-4o', exact: true }).click();
  await page.getByLabel('Reason (optional)').fill('The bill shows 2.50');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Proposals', exact: true }).waitFor();
  const { proposals } = (await api.get(PROPOSALS)).body;
  expect(
    proposals.map(({ model, status, reason }: Record<string, string>) => [model, status, reason]),
  ).toEqual(
    expect.arrayContaining([
      ['gpt-4o-mini', 'applied', null],
      ['gpt-4o', 'dismissed', 'The bill shows 2.50'],
    ]),
  );
  expect((await api.get('/api/v1/pricing/overrides')).body.overrides).toMatchObject([
    { model: 'gpt-4o-mini', rates: { input: 0.12 } },
  ]);
  expect(faults).toEqual([]);
  await close();
});
