import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { api, fieldError, toFormData } from '../../api/client';
import { guessProvider, PROVIDER_OPTIONS, type Provider } from '../../app/providers';
import { Button } from '../../parts/forms/Button';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { FileDrop } from '../../parts/forms/FileDrop';
import { FormError } from '../../parts/forms/FormError';
import { Modal } from '../../parts/forms/Modal';
import { useToast } from '../../parts/Toasts';

/** Takes the PDF of an invoice by drop or button, then asks who issued it. */
export function UploadInvoice() {
  const [file, setFile] = useState<File>();
  return (
    <>
      <FileDrop
        label="or drop the PDF of an invoice here"
        button="Upload an invoice"
        accept={['application/pdf']}
        onFile={setFile}
      />
      <Modal title="Upload an invoice" isOpen={file !== undefined} onClose={() => setFile(undefined)}>
        {file && <UploadForm file={file} onClose={() => setFile(undefined)} />}
      </Modal>
    </>
  );
}

function UploadForm({ file, onClose }: { file: File; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [, go] = useLocation();
  const [provider, setProvider] = useState<Provider>(() => guessProvider(file.name));
  const [account, setAccount] = useState('');
  const [rate, setRate] = useState('');
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const errorOf = (field: string) => fieldError(error, field);
  const upload = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      const answer = await api.POST('/api/v1/reconciliation/invoice', {
        body: { file: file as unknown as string, provider, account, fx_rate: rate },
        bodySerializer: toFormData,
      });
      if (answer.error) return setError(answer.error);
      await client.invalidateQueries({ queryKey: ['get', '/api/v1/reconciliation/invoices'] });
      toast(
        answer.data.duplicate
          ? 'The same file was uploaded before: this is that invoice.'
          : 'The invoice is uploaded and is being read.',
      );
      go(`/invoices/${answer.data.invoice_id}`);
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
        <strong>{file.name}</strong>, {Math.ceil(file.size / 1024).toLocaleString('en-US')} KB
      </p>
      <Select label="Issued by" value={provider} options={PROVIDER_OPTIONS} onChange={setProvider} />
      <TextField
        label="Account at the provider (optional)"
        value={account}
        onChange={setAccount}
        error={errorOf('account')}
        help="Needed where the document does not name the account as bills do."
      />
      <TextField
        label="US dollars for one unit of the invoice’s currency (optional)"
        value={rate}
        onChange={setRate}
        inputMode="decimal"
        error={errorOf('fx_rate')}
        help="Needed for an invoice in another currency, for example 1.0842."
      />
      <FormError error={error} shown={['account', 'fx_rate']} />
    </Form>
  );
}
