import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
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

it('signs in with a key that was typed, and out again', async () => {
  const { page, close } = await openTab(browser, api.baseUrl);
  await page.goto('/');
  await page.getByLabel('API key').fill(api.adminKey);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  const cookies = await page.context().cookies();
  expect(cookies.map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }))).toEqual([
    { name: 'session', httpOnly: true, sameSite: 'Strict' },
  ]);
  await page.getByRole('button', { name: 'Account' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Trueup' }).waitFor();
  expect(await page.context().cookies()).toEqual([]);
  await close();
});

it('says why a key is refused and keeps the form', async () => {
  const { page, close } = await openTab(browser, api.baseUrl);
  await page.goto('/');
  await page.getByLabel('API key').fill('tu_live_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').waitFor();
  expect(await page.getByLabel('API key').inputValue()).toBe('tu_live_wrong');
  await close();
});

it('asks for a new sign-in over the screen when the session ends, and leaves the screen as it was', async () => {
  const { page, close } = await openTab(browser, api.baseUrl, api.adminKey);
  await visit(page, '/');
  await page.evaluate(() => Object.assign(globalThis, { isSamePage: true }));
  const sessions = (await page.evaluate(async () => (await fetch('/api/v1/sessions')).json())) as {
    sessions: { id: string; is_current: boolean }[];
  };
  const id = sessions.sessions.find((one) => one.is_current)?.id;
  await fetch(`${api.baseUrl}/api/v1/sessions/${id}`, {
    method: 'DELETE',
    headers: { Authorization: `Bearer ${api.adminKey}` },
  });
  await page.keyboard.press('/');
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await page.getByLabel('API key').fill(api.adminKey);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor({ state: 'detached' });
  expect(await page.evaluate(() => 'isSamePage' in globalThis)).toBe(true);
  await close();
});
