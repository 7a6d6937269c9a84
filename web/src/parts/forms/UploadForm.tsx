import { type ReactNode, useState } from 'react';
import { fieldError } from '../../api/client';
import { count } from '../../app/format';
import { guessProvider, PROVIDER_OPTIONS, type Provider } from '../../app/providers';
import { Button } from './Button';
import { Form, Select, TextField } from './Fields';
import { FormError } from './FormError';

/** The fields that the API takes with every document of a provider; empty ones are left out. */
interface UploadBody {
  file: string;
  provider: Provider;
  account: string;
  fx_rate: string;
}

/** Asks for a document's provider, account and exchange rate, then sends it. */
export function UploadForm({
  file,
  words,
  send,
  onClose,
  children,
}: {
  file: File;
  words: { provider: string; accountHelp: string; rate: string; rateHelp: string };
  /** Sends the document; returns the error of a refused one. */
  send: (body: UploadBody) => Promise<unknown>;
  onClose: () => void;
  /** Further fields, below the provider. */
  children?: ReactNode;
}) {
  const [provider, setProvider] = useState<Provider>(() => guessProvider(file.name));
  const [account, setAccount] = useState('');
  const [rate, setRate] = useState('');
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const upload = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      // `toFormData` sends the file itself; the API's document describes it as a string.
      setError(await send({ file: file as unknown as string, provider, account, fx_rate: rate }));
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Form
      onSubmit={() => void upload()}
      actions={
        <>
          <Button kind="primary" type="submit" isPending={isBusy}>
            {isBusy ? 'Uploading …' : 'Upload'}
          </Button>
          <Button onPress={onClose}>Cancel</Button>
        </>
      }
    >
      <p>
        <strong>{file.name}</strong>, {count(Math.ceil(file.size / 1024))} KB
      </p>
      <Select label={words.provider} value={provider} options={PROVIDER_OPTIONS} onChange={setProvider} />
      {children}
      <TextField
        label="Account at the provider (optional)"
        value={account}
        onChange={setAccount}
        help={words.accountHelp}
        error={fieldError(error, 'account')}
      />
      <TextField
        label={words.rate}
        value={rate}
        onChange={setRate}
        inputMode="decimal"
        help={words.rateHelp}
        error={fieldError(error, 'fx_rate')}
      />
      <FormError error={error} shown={['account', 'fx_rate']} />
    </Form>
  );
}
