import { describe, expect, it } from 'vitest';
import { type RequestToSign, signAws } from '../../../../adapters/billing/awsBedrockConnector.js';

/** AWS's published test suite of Signature Version 4: its credentials, its time, its expected signatures. */
const CREDENTIALS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
const AT = BigInt(Date.UTC(2015, 7, 30, 12, 36, 0)) * 1_000n;

async function signatureOf(
  request: Partial<RequestToSign> & { path?: string },
  service = 'service',
  host = 'example.amazonaws.com',
) {
  const { authorization = '' } = await signAws(
    {
      method: 'GET',
      headers: {},
      body: '',
      url: new URL(`https://${host}${request.path ?? '/'}`),
      ...request,
    },
    CREDENTIALS,
    { region: 'us-east-1', service },
    AT,
  );
  return /Signature=([0-9a-f]+)$/.exec(authorization)?.[1];
}

describe('AWS signatures', () => {
  it.each([
    ['get-vanilla', {}, '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
    ['post-vanilla', { method: 'POST' }, '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
    [
      'get-vanilla-query-order-key-case',
      { path: '/?Param2=value2&Param1=value1' },
      'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
    ],
    [
      'post-x-www-form-urlencoded',
      {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'Param1=value1',
      },
      'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
    ],
  ])('are those of the published case %s', async (_name, request, signature) => {
    expect(await signatureOf(request)).toBe(signature);
  });

  it('are that of the documentation’s request to IAM', async () => {
    const request = {
      path: '/?Action=ListUsers&Version=2010-05-08',
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    };
    expect(await signatureOf(request, 'iam', 'iam.amazonaws.com')).toBe(
      '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7',
    );
  });

  it('cover the token of temporary credentials', async () => {
    const headers = await signAws(
      {
        method: 'POST',
        url: new URL('https://ce.us-east-1.amazonaws.com/'),
        headers: { 'x-amz-target': 'a' },
        body: '{}',
      },
      { ...CREDENTIALS, sessionToken: 'T'.repeat(20) },
      { region: 'us-east-1', service: 'ce' },
      AT,
    );
    expect(headers['x-amz-security-token']).toBe('T'.repeat(20));
    expect(headers.authorization).toContain(
      'SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target,',
    );
    expect(headers['x-amz-date']).toBe('20150830T123600Z');
  });
});
